import { enginesOf } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import { growthLimits } from "../observation/ObservedEngine.ts"
import { hasPod } from "./Rule.ts"
import { leastServing } from "./surge.ts"
import { endpointOf, isUp } from "./traffic.ts"

/** What to do if a move stops because of a limit. Other limits end by themselves, or have their own message. */
const remedies = {
  gpus: "Free GPUs of the host class",
  queue: "Free GPUs of the host class",
  organization: "Raise the organization's GPU limit"
} as const

export interface StoppedMove {
  /** For API callers too. */
  readonly message: string
  /** For the cluster administrator. */
  readonly remedy: string
}

const hasTraffic = (engine: Observation): boolean => hasPod(engine) && isUp(engine.pod) && endpointOf(engine)?.reachable === true

/**
 * Why the model stops halfway to this revision: its next engine has no GPUs, and no engine of the earlier revision may
 * leave before it serves. Null if the move goes on, also if GPUs are free soon.
 */
export const stoppedMove = (observation: Observation): StoppedMove | null => {
  const { growth, podClass, run } = observation
  const { earlier = 0, replicas = 1 } = run
  const { limit } = growth
  if (earlier === 0 || podClass === null || growth.room > 0 || growth.freeing === true || (limit !== "gpus" && limit !== "queue" && limit !== "organization"))
    return null
  const present = enginesOf(observation).filter(({ alone }) => alone.pod !== null)
  if (present.length >= replicas || present.some(({ alone }) => !hasTraffic(alone))) return null
  if (present.length + earlier > leastServing(observation)) return null
  const { hostClass, maxUnavailable = 0 } = podClass
  const engines = earlier === 1 ? "the engine of the earlier revision goes on" : `the ${earlier} engines of the earlier revision go on`
  return {
    message: `The move to the new revision has stopped: its next engine waits for ${growthLimits[limit].missing}, and ${engines} until that engine serves.`,
    remedy: `${remedies[limit]}, or set \`maxUnavailable: ${maxUnavailable + 1}\` on the host class ${hostClass.name}.`
  }
}
