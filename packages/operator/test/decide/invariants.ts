import { canEnter, isFinished } from "@seatrial/domain"
import type { Decision } from "../../src/decide/Decision.ts"
import { isIdle, isServed } from "../../src/decide/idle.ts"
import { drainLimit, nodePatience } from "../../src/decide/limits.ts"
import { endedOf, type Observation } from "../../src/decide/Observation.ts"
import { foreign, secret } from "./anyObservation.ts"

/** What of an engine answers whoever asks, and what is known to be its own. */
const engineOf = (seen: Observation, now: number) => {
  const { pod, run } = seen
  const silent = pod?.nodeDownSince ?? null
  const tried = run.revision?.engineDigest ?? null
  // Of a node that has just fallen silent nobody knows: what gets traffic from it keeps that, and nothing gets any anew.
  const up = pod !== null && pod.lost === null && !pod.deleting && pod.ready && pod.url !== null
  const answers = up && (silent === null || now < Math.max(silent, seen.leadingSince) + nodePatience)
  /** Whether it is known to run another image than the one that was tried, or what an adapter was only compared with. */
  const other = pod !== null && pod.merge !== null && seen.merged === "none"
  const changed = other || (pod !== null && !pod.imagePinned && tried !== null && pod.imageDigest !== null && pod.imageDigest !== tried)
  /** Whether gateways may ask it already. */
  const requestedEngines = run.endpoints.some(({ pod: name, url }) => url === pod?.url && name === pod?.name)
  /** Whether it is known to answer otherwise than what was verified, and was given no traffic. */
  const otherwise = seen.boot?.verdict?.outcome === "differs" && !requestedEngines
  const servesOn = isServed(seen) && run.engineRun === run.id && run.replacedBy === null && answers && !changed && !otherwise && !isIdle(seen, now)
  return { answers, requestedEngines, changed, healthy: up && silent === null, otherwise, servesOn, serves: servesOn && silent === null }
}

const idsIn = (text: string) => text.match(/dep_[0-9a-z]+/gu) ?? []

/**
 * What a decision breaks of what must always hold, each with the number that it has in docs/explanation/architecture.md; of each of the six what a decision alone can break. What the
 * rest of the reconciler, the store and the gateway have to do for them is named there, with its tests.
 */
export const violated = (seen: Observation, now: number, { actions, message, work }: Decision): ReadonlyArray<string> => {
  const { endpoints, engineRun, id, phase, requeues, revision } = seen.run
  const found: Array<string> = []
  const hold = (invariant: 1 | 2 | 3 | 4 | 5 | 6, holds: boolean, what: string) => {
    if (!holds) found.push(`${invariant}: ${what} (${phase}: ${message})`)
  }
  const { answers, requestedEngines, changed, healthy, otherwise, serves, servesOn } = engineOf(seen, now)
  const own = engineRun === id
  const known = endpoints.length === 1 && endpoints[0]?.url === seen.pod?.url
  const reached = endpoints.some((endpoint) => endpoint.reachable && endpoint.url === seen.pod?.url)
  /** Whether callers' requests may be under way on its engine. */
  const isAsked = phase === "activated" && own && answers && !otherwise && (revision?.status === "active" || revision?.status === "superseded")
  /** Whether nobody has compared it with what was verified, and what is published is an earlier start's. */
  const uncompared = !requestedEngines && seen.boot !== null && seen.boot.verdict === null
  const drained = seen.run.inFlight === 0 || (seen.withdrawnAt !== null && now >= seen.withdrawnAt + drainLimit)

  for (const action of actions) {
    switch (action._tag) {
      case "Enter":
        hold(2, !isFinished(phase) && canEnter(phase, action.to, requeues), `enters ${action.to} after ${requeues} requeues`)
        hold(3, action.failure === null || !action.failure.text.includes(foreign), "answers an organization with the cluster's words")
        hold(6, action.to !== "measuring" || revision?.checks?.passed === true, "measures what has not passed its checks")
        hold(6, action.to !== "benchmarking" || revision?.measured !== null, "goes on without the engine's figures")
        hold(6, action.to !== "activating" || !own || revision?.benchmark !== null, "offers gateways what was not tried")
        break
      case "Activate":
        hold(2, !isFinished(phase), "activates a run that is over")
        hold(2, !seen.run.modelDeleted, "activates a model that was deleted")
        if (seen.run.serve && own && revision?.status !== "active") hold(1, healthy && reached, "activates what no gateway reached")
        if (seen.run.serve && revision?.status !== "active") {
          const verdict = seen.boot?.verdict ?? null
          const requestedEngines = seen.boot === null || verdict !== null || (endedOf(seen, "boot")?.attempts ?? 0) >= 3
          hold(6, requestedEngines && verdict?.outcome !== "differs", "gives traffic to an engine that was not compared")
        }
        if (own) hold(6, revision?.checks?.passed === true && revision.measured !== null && revision.benchmark !== null, "activates what was not tried")
        break
      case "RemovePod":
        hold(1, !serves, "removes an engine that serves")
        hold(2, own || !isFinished(phase), "removes the engine of another run after its end")
        hold(2, action.uid === null || action.uid === seen.pod?.uid, "removes a pod that it has not seen")
        hold(5, !isAsked || changed || drained, "removes an engine with requests under way")
        hold(5, !isAsked || changed || endpoints.length === 0, "removes an engine that gateways may still ask")
        break
      case "Publish":
        hold(1, !serves || action.endpoints.length > 0 || uncompared, "withdraws an engine that serves")
        hold(1, !(servesOn && known) || action.endpoints.length > 0, "withdraws what its node's silence may have left")
        hold(1, action.endpoints.length === 0 || healthy, "publishes an engine that does not answer")
        hold(
          6,
          action.endpoints.length === 0 || requestedEngines || seen.boot?.verdict?.outcome !== "differs",
          "publishes what answers otherwise than what was verified"
        )
        hold(
          6,
          action.endpoints.length === 0 || seen.boot === null || seen.boot.verdict !== null || (endedOf(seen, "boot")?.attempts ?? 0) >= 3,
          "publishes an engine that was not compared"
        )
        hold(6, action.endpoints.length === 0 || seen.pod?.merge === null, "publishes what the adapter is only compared with")
        hold(6, action.endpoints.length === 0 || !changed, "publishes another image than the one that was tried")
        break
      case "RecordEngineImage":
        hold(6, action.image === seen.pod?.image, "notes an image that is not the engine's")
        hold(6, revision?.engineImage === null || revision?.engineImage === action.image, "notes another image than the one that was tried")
        hold(6, (revision?.engineDigest ?? null) === null, "notes another digest than the one that was tried")
        break
      default:
    }
  }
  const said = [message, ...actions.flatMap((action) => ("reason" in action ? [action.reason] : "message" in action ? [action.message] : []))].join("\n")
  const { olderRun, predecessor, replacedBy, reusedBy } = seen.run
  const candidates = seen.candidates.map(({ run }) => run)
  const ours = new Set([id, engineRun, olderRun, replacedBy, predecessor?.run, ...reusedBy, ...candidates])
  hold(
    3,
    idsIn(said).every((named) => [...ours].some((one) => one === named)),
    "names a run that is not its model's"
  )
  hold(4, !JSON.stringify([actions, message]).includes(secret), "says what an engine has printed")
  if (work !== null && work !== "screening") hold(6, (work === "fidelity") === (seen.pod?.merge != null), `has ${work} done to the wrong engine`)
  if (work === "fidelity" || work === "checking" || work === "measuring" || work === "benchmarking") {
    // What was begun while it was ready goes on: it is busy with that.
    hold(6, healthy || answers || (seen.sameStart && seen.work.running === work), "tries an engine that is not ready")
    hold(6, seen.pod?.image === null || revision?.engineImage !== null, "tries an engine whose image nobody noted")
    hold(6, !changed, "tries another image than the one that was tried before")
  }
  return found
}
