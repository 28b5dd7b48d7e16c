import { canEnter, isFinished } from "@seatrial/domain"
import type { Decision } from "../../src/decide/Decision.ts"
import { isUnpaid } from "../../src/decide/funding.ts"
import { isIdle } from "../../src/decide/idle.ts"
import { drainLimit, nodePatience } from "../../src/limits.ts"
import { isServed } from "../../src/observation/isServed.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { endedOf, needsEngine } from "../../src/observation/work.ts"
import { foreign, secret } from "./anyObservation.ts"

/** The state of the run's engine as callers see it, and whether the run owns it. */
const engineOf = (observation: Observation, now: number) => {
  const { pod, run } = observation
  const silent = pod?.nodeDownSince ?? null
  const tried = run.revision?.engineDigest ?? null
  // The state of a node that has just become unresponsive is unknown. Its engine keeps its traffic and gets no new
  // traffic.
  const up = pod !== null && pod.lost === null && !pod.deleting && pod.ready && pod.url !== null
  const answers = up && (silent === null || now < Math.max(silent, observation.leadingSince) + nodePatience)
  /** Whether it is known to run another image than the verified one, or only serves the merged model. */
  const other = pod !== null && pod.merge !== null && observation.merged === "none"
  const changed = other || (pod !== null && !pod.imagePinned && tried !== null && pod.imageDigest !== null && pod.imageDigest !== tried)
  /** Whether gateways may send requests to it. */
  const isPublished = run.endpoints.some(({ pod: name, url }) => url === pod?.url && name === pod?.name)
  /** Whether its answers are known to differ from the verified ones and it has no traffic. */
  const outcome = observation.boot?.verdict?.outcome
  const otherwise = outcome === "differs" && !isPublished
  /** Whether its probes differ, and it may be replaced although the model then has no engine for a while. */
  const isReplaced = outcome === "suspect" && (!isPublished || observation.podClass?.sentinel?.withdrawLast === true)
  const servesOn =
    isServed(observation) &&
    run.engineRun === run.id &&
    run.replacedBy === null &&
    answers &&
    !changed &&
    !otherwise &&
    !isReplaced &&
    !isIdle(observation, now) &&
    !isUnpaid(observation, now)
  return { answers, isPublished, changed, healthy: up && silent === null, otherwise, servesOn, serves: servesOn && silent === null }
}

const idsIn = (text: string) => text.match(/dep_[0-9a-z]+/gu) ?? []

/**
 * The invariants that a decision breaks, with their numbers in docs/explanation/architecture.md. Only the part of each
 * of the six that a decision alone can break. That page names the parts of the reconciler, the store and the gateway,
 * with their tests.
 */
export const brokenInvariants = (observation: Observation, now: number, { actions, message, work }: Decision): ReadonlyArray<string> => {
  const { endpoints, engineRun, id, phase, requeues, revision } = observation.run
  const broken: Array<string> = []
  const hold = (invariant: 1 | 2 | 3 | 4 | 5 | 6, holds: boolean, what: string) => {
    if (!holds) broken.push(`${invariant}: ${what} (${phase}: ${message})`)
  }
  const { answers, isPublished, changed, healthy, otherwise, serves, servesOn } = engineOf(observation, now)
  const own = engineRun === id
  const known = endpoints.length === 1 && endpoints[0]?.url === observation.pod?.url
  const reached = endpoints.some((endpoint) => endpoint.reachable && endpoint.url === observation.pod?.url)
  /** Whether callers may have requests in progress on its engine. */
  const isAsked = phase === "activated" && own && answers && !otherwise && (revision?.status === "active" || revision?.status === "superseded")
  /** Whether it was not compared with the verified answers and the published endpoint belongs to an earlier start. */
  const uncompared = !isPublished && observation.boot !== null && observation.boot.verdict === null
  const drained = observation.run.inFlight === 0 || (observation.withdrawnAt !== null && now >= observation.withdrawnAt + drainLimit)

  for (const action of actions) {
    switch (action._tag) {
      case "Enter":
        hold(2, !isFinished(phase) && canEnter(phase, action.to, action.hadNoGpus === true ? 0 : requeues), `enters ${action.to} after ${requeues} requeues`)
        hold(3, action.failure === null || !action.failure.text.includes(foreign), "answers an organization with the cluster's words")
        hold(6, action.to !== "measuring" || revision?.checks?.passed === true, "measures what has not passed its checks")
        hold(6, action.to !== "benchmarking" || revision?.measured !== null, "goes on without the engine's figures")
        hold(6, action.to !== "activating" || !own || revision?.benchmark !== null, "offers gateways what was not tried")
        break
      case "Activate":
        hold(2, !isFinished(phase), "activates a run that is over")
        hold(2, !observation.run.modelDeleted, "activates a model that was deleted")
        if (observation.run.serve && own && revision?.status !== "active") hold(1, healthy && reached, "activates what no gateway reached")
        if (observation.run.serve && revision?.status !== "active") {
          const verdict = observation.boot?.verdict ?? null
          const isCompared = observation.boot === null || verdict !== null || (endedOf(observation, "boot")?.attempts ?? 0) >= 3
          hold(6, isCompared && verdict?.outcome !== "differs", "gives traffic to an engine that was not compared")
        }
        if (own) hold(6, revision?.checks?.passed === true && revision.measured !== null && revision.benchmark !== null, "activates what was not tried")
        break
      case "RemovePod":
        hold(1, !serves, "removes an engine that serves")
        hold(2, own || !isFinished(phase), "removes the engine of another run after its end")
        hold(2, action.uid === null || action.uid === observation.pod?.uid, "removes a pod that it has not seen")
        hold(5, !isAsked || changed || drained, "removes an engine with requests under way")
        hold(5, !isAsked || changed || endpoints.length === 0, "removes an engine that gateways may still ask")
        break
      case "Publish":
        hold(1, !serves || action.endpoints.length > 0 || uncompared, "withdraws an engine that serves")
        hold(1, !(servesOn && known) || action.endpoints.length > 0, "withdraws what its node's silence may have left")
        hold(1, action.endpoints.length === 0 || healthy, "publishes an engine that does not answer")
        hold(
          6,
          action.endpoints.length === 0 || isPublished || !["differs", "suspect"].includes(observation.boot?.verdict?.outcome ?? ""),
          "publishes what answers otherwise than what was verified"
        )
        hold(
          6,
          action.endpoints.length === 0 || observation.boot === null || observation.boot.verdict !== null || (endedOf(observation, "boot")?.attempts ?? 0) >= 3,
          "publishes an engine that was not compared"
        )
        hold(6, action.endpoints.length === 0 || observation.pod?.merge === null, "publishes what the adapter is only compared with")
        hold(6, action.endpoints.length === 0 || !changed, "publishes another image than the one that was tried")
        break
      case "RecordEngineImage":
        hold(6, action.image === observation.pod?.image, "notes an image that is not the engine's")
        hold(6, revision?.engineImage === null || revision?.engineImage === action.image, "notes another image than the one that was tried")
        hold(6, (revision?.engineDigest ?? null) === null, "notes another digest than the one that was tried")
        break
      default:
    }
  }
  const texts = [message, ...actions.flatMap((action) => ("reason" in action ? [action.reason] : "message" in action ? [action.message] : []))].join("\n")
  const { olderRun, predecessor, replacedBy, reusedBy } = observation.run
  const candidates = observation.candidates.map(({ run }) => run)
  const ours = new Set([id, engineRun, olderRun, replacedBy, predecessor?.run, ...reusedBy, ...candidates])
  hold(
    3,
    idsIn(texts).every((named) => [...ours].some((one) => one === named)),
    "names a run that is not its model's"
  )
  hold(4, !JSON.stringify([actions, message]).includes(secret), "says what an engine has printed")
  if (work !== null && needsEngine(work)) hold(6, (work === "fidelity") === (observation.pod?.merge != null), `has ${work} done to the wrong engine`)
  if (work !== null && needsEngine(work) && work !== "boot") {
    // Work that began while the engine was ready continues: the engine is busy with it.
    hold(6, healthy || answers || (observation.sameStart && observation.work.running === work), "tries an engine that is not ready")
    hold(6, observation.pod?.image === null || revision?.engineImage !== null, "tries an engine whose image was not recorded")
    hold(6, !changed, "tries another image than the one that was tried before")
  }
  return broken
}
