import { derivePreview } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import type { Run } from "@seatrial/store"
import type { PodClass } from "../../resources/PodClass.ts"

/**
 * The host classes on which the run's model fits with the requested settings (except the host class) and within its
 * organization's limit, best first.
 */
export const fittingClasses = ({ gpuLimit, revision, servingRequest }: Run, classes: ReadonlyArray<PodClass>): ReadonlyArray<PodClass> => {
  if (revision === null) return []
  const { host_class: _, ...request } = servingRequest
  const usable = classes.filter(({ nodes, queueName }) => nodes === 1 && queueName === null)
  const hostClasses = usable.map(({ hostClass }) => hostClass)
  const preview = derivePreview({ facts: revision.facts, ref: null, request, hostClasses, engines, gpuLimit })
  if (preview.kind === "refused") return []
  const names = [preview.serving.host_class, ...preview.alternatives.map(({ host_class }) => host_class)]
  return names.flatMap((name) => usable.find(({ hostClass }) => hostClass.name === name) ?? [])
}
