import type { Observation } from "../observation/Observation.ts"
import { answersDiffer, bootEvents, compareFirst, describeDifference, replaceRestarted } from "./bootCheck.ts"
import { Action, act, by, type Decision, fail, wait } from "./Decision.ts"
import { onceElsewhere } from "./elsewhere.ts"
import { engineFirst } from "./engineInTrial.ts"
import { type EngineObservation, firstOf, hasPod, type Rule } from "./Rule.ts"
import { endpointOf, reachDeadline } from "./traffic.ts"

/** The endpoint of the engine, if the gateways route to it alone. */
const soleEndpoint = (observation: EngineObservation) => (observation.run.endpoints.length === 1 ? (endpointOf(observation) ?? null) : null)

/**
 * The pod's status and the gateways' observations may be from before the node became unresponsive, so the engine takes
 * no traffic from the serving revision. Either the node returns or the pod is lost.
 */
const silentNode: Rule = ({ pod }) => (pod.nodeDownSince === null ? null : wait("The deployment waits for the engine's node, which does not respond."))

/** A published engine may have restarted since, and may answer differently. */
const otherAnswers: Rule = (observation) => {
  if (!answersDiffer(observation)) return null
  const difference = describeDifference(observation)
  const retry = onceElsewhere(observation, "fingerprints_differ", `${difference} Another node is tried.`)
  if (retry !== null) return retry
  const replacement = replaceRestarted(observation)
  if (replacement === null) return fail("nondeterministic_output", difference)
  const withdrawal = observation.run.endpoints.length === 0 ? [] : [Action.Publish({ endpoints: [] })]
  return { ...replacement, actions: [...withdrawal, ...replacement.actions] }
}

const reached: Rule = (observation) => (soleEndpoint(observation)?.reachable === true ? act("A gateway reached the engine.", Action.Activate()) : null)

/** Publishes the engine, and waits until a gateway reaches it, at the latest until the deadline. */
const publish = (observation: EngineObservation, url: string, now: number): Decision => {
  const { pod, run } = observation
  const deadline = reachDeadline(observation)
  if (now >= deadline)
    return fail(
      "gateway_unreachable",
      `No gateway reached the new revision within 2 minutes.${run.predecessor === null || run.replaces ? "" : " The previous revision continues to serve."} Deploy again; if the problem persists, contact the cluster administrator.`
    )
  if (soleEndpoint(observation) !== null) return wait("The deployment waits until a gateway has reached the engine.", deadline)
  return {
    ...act("Seatrial publishes the engine to the gateways.", ...bootEvents(observation), Action.Publish({ endpoints: [{ url, pod: pod.name }] })),
    requeueAt: deadline
  }
}

/**
 * Publishes the engine to the gateways, and activates it once a gateway reached it. The serving revision is not touched
 * before.
 */
export const activating = (observation: Observation, now: number): Decision => {
  // Only a run that reuses the serving revision gets here with an active revision. Traffic and engine stay as they are.
  if (observation.run.revision?.status === "active") return by("alreadyServes", act("The revision already serves.", Action.Activate()))
  const first = engineFirst(observation, now, "boot")
  if (first !== null) return first
  if (!hasPod(observation) || observation.pod.url === null) return by("noAddress", wait("The deployment waits for the engine's address."))
  return firstOf({ silentNode, otherAnswers, compareFirst, reached }, observation, now) ?? by("publish", publish(observation, observation.pod.url, now))
}
