import type { Run } from "@seatrial/store"
import type { Observation } from "../decide/Observation.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { PodClass } from "../resources/HostClassResource.ts"
import { weightsManifest } from "../resources/weightFiles.ts"

/** How the store is called in which the run's weights are kept: its claim and its namespace. */
export const weightsStore = (podClass: PodClass | null, { namespace, weightsClaim }: Pick<OperatorSettings, "namespace" | "weightsClaim">): string =>
  `${namespace}/${podClass?.weightsClaim ?? weightsClaim}`

/** What is known of the run's weights in that store: nothing where the list of files is another one, or its host class is gone. */
export const weightsSeen = (run: Run, podClass: PodClass | null, settings: Pick<OperatorSettings, "namespace" | "weightsClaim">): Observation["weights"] => {
  const { createdAt, id, revision, storedWeights } = run
  if (revision === null || podClass === null || storedWeights.length === 0) return null
  const store = weightsStore(podClass, settings)
  const stored = storedWeights.find((each) => each.store === store)
  if (stored === undefined || stored.manifest !== weightsManifest(revision)) return null
  return { own: stored.verifiedBy === id || stored.verifiedAt > createdAt }
}
