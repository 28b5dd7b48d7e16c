import { gatewayDeadline } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import { endedOf } from "../observation/work.ts"
import { withheld } from "./bootCheck.ts"
import type { EngineObservation } from "./Rule.ts"

/** Whether the engine accepts requests, as far as its node reports. */
export const isUp = (pod: ObservedPod): boolean => pod.lost === null && !pod.deleting && pod.ready && pod.url !== null

/** The endpoint of the engine; undefined if the gateways do not route to it. */
export const endpointOf = ({ pod, run }: EngineObservation) => run.endpoints.find((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)

/**
 * When a gateway must have reached the engine, Unix milliseconds. The time starts when the engine can be published,
 * which is after its comparison.
 */
export const reachDeadline = (observation: EngineObservation): number => {
  const comparedAt = [observation.boot?.verdict?.at ?? null, endedOf(observation, "boot")?.at ?? null]
  return countedFrom(observation, observation.run.phaseSince, observation.pod.readyChangedAt, ...comparedAt) + gatewayDeadline
}

/**
 * Why an engine has no traffic although its pod is ready, as the reason of the condition `Ready`. Null if nothing
 * withholds its traffic.
 */
export const whyNoTraffic = (observation: Observation, now: number): "AnswersDiffer" | "EngineNotReady" | "GatewayUnreachable" | null => {
  const { pod } = observation
  if (pod === null || !isUp(pod)) return null
  const reason = withheld(observation)
  if (reason !== null) return reason
  const engine = { ...observation, pod }
  // The node's probe may reach an engine that no gateway can reach.
  return endpointOf(engine)?.reachable === true ? null : now < reachDeadline(engine) ? "EngineNotReady" : "GatewayUnreachable"
}

/** The message for an engine that no gateway has reached. */
const unreached = "No gateway has reached the engine. Check that a gateway runs, and that it can reach the engine"

/**
 * The message for a ready engine, for the cluster administrator and for API callers, and when it changes by itself.
 */
export const describeTraffic = (
  observation: EngineObservation,
  now: number
): { readonly message: string; readonly publicMessage?: string; readonly requeueAt: number | null } => {
  const endpoint = endpointOf(observation)
  if (endpoint === undefined) return { message: "Seatrial publishes the engine to the gateways.", requeueAt: null }
  if (endpoint.reachable) return { message: "Serves.", requeueAt: null }
  const deadline = reachDeadline(observation)
  if (now < deadline) return { message: "The model waits until a gateway has reached the engine.", requeueAt: deadline }
  return { message: `${unreached} at ${observation.pod.url} (NetworkPolicies, service mesh).`, publicMessage: `${unreached}.`, requeueAt: null }
}
