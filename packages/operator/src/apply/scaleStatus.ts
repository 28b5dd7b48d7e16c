import type { DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { isServed } from "../observation/isServed.ts"
import { scalingLimits } from "../observation/ObservedEngine.ts"
import type { ModelDeploymentStatus } from "../resources/ModelDeployment.ts"
import { deploymentLabel, roleLabel } from "../resources/objectNames.ts"
import { earlierEngines, earlierServing, servingStatus, showsModel, type Verdict } from "./modelVerdicts.ts"

/** Numbers of engine pods. `earlier`: pods of the serving revision while another run is tried. */
export interface EngineCounts {
  readonly own: number
  readonly earlier: number
  /**
   * Why the model lacks engines above its first, or engines for its load; null if it lacks none, undefined if that is not
   * known yet.
   */
  readonly lacks: keyof typeof scalingLimits | null | undefined
}

export const noEngines: EngineCounts = { own: 0, earlier: 0, lacks: null }

type ScaleStatus = Pick<ModelDeploymentStatus, "desiredReplicas" | "readyReplicas" | "replicas" | "selector">

const selectorOf = (run: DeploymentId): string => `${deploymentLabel}=${run},${roleLabel}=engine`

const showsEarlier = (run: Run): boolean => !isServed({ run }) && earlierServing(run) !== null

/** The engine pods of the serving revision, or of the run if none serves. */
const podsOf = (run: Run, { earlier, own }: EngineCounts): number => (showsEarlier(run) ? earlier : own)

/** How many engines the model should have, has and serves with, as the scale subresource reads it. */
export const scaleStatus = (run: Run, engines: EngineCounts): ScaleStatus => ({
  ...(isServed({ run }) || showsModel(run) ? { desiredReplicas: run.replicas ?? 1 } : {}),
  replicas: podsOf(run, engines) + earlierEngines(run),
  readyReplicas: servingStatus(run)?.replicas ?? 0,
  selector: selectorOf(showsEarlier(run) && run.predecessor !== null ? run.predecessor.run : run.engineRun)
})

interface ScalingInput {
  readonly run: Run
  readonly engines?: EngineCounts
  readonly idle?: boolean
  readonly unfunded?: string | null
}

/**
 * Whether the model has fewer engines than it should have, and why. Null if the object shows a run that does not serve;
 * undefined if the reason is not known yet.
 */
export const scalingVerdict = ({ engines = noEngines, idle = false, run, unfunded = null }: ScalingInput): Verdict | null | undefined => {
  const { desiredReplicas } = scaleStatus(run, engines)
  const replicas = podsOf(run, engines)
  if (desiredReplicas === undefined) return null
  if (servingStatus(run) === null) return { holds: false, reason: "NotServing", message: "The model does not serve." }
  const lacks = unfunded === null ? engines.lacks : "funds"
  if (lacks === undefined && desiredReplicas > Math.max(1, replicas)) return undefined
  if (lacks === undefined || lacks === null)
    return idle
      ? { holds: false, reason: "Idle", message: "The model gets no requests, so it needs no engine." }
      : { holds: false, reason: "Granted", message: "No engine waits for GPUs." }
  const { message, reason } = scalingLimits[lacks]
  return { holds: true, reason, message: `The model has ${replicas} of ${desiredReplicas} engines: ${message}` }
}
