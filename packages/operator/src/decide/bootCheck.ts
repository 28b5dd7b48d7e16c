import { startsDiffer } from "@seatrial/domain"
import { backoff, trialAttempts } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import type { ObservedBoot, ObservedPod } from "../observation/ObservedPod.ts"
import { endedOf } from "../observation/work.ts"
import { Action, act, type Decision, wait } from "./Decision.ts"

/** The code that records a start with different answers while another engine serves: the model is not out of service. */
const oneDiffers = "fingerprints_differ"

/** The reason of the event about an engine whose start could not be compared. */
const notCompared = "StartNotCompared"

/** Consecutive starts with different answers after which the model stays without traffic. */
const mostStarts = 2

/** The message for an engine that gives other answers than the verified ones. */
export const describeDifference = (observation: Observation): string =>
  `The engine's answers differ from the verified ones: ${observation.boot?.verdict?.message ?? ""} The engine gets no traffic.`

/**
 * Replaces the pod if its answers differ after its container was restarted in place. The init container that checks the
 * weights runs only once per pod. In a new pod it finds altered weights, and the operator downloads them again. This
 * happens once, because the next start is the second one. Null if a new pod cannot help.
 */
export const replaceRestarted = (observation: Observation): Decision | null => {
  const { boot, pod } = observation
  if (boot === null || pod === null || pod.restarts === 0 || boot.failures >= mostStarts) return null
  const message = `${describeDifference(observation)} The container restarted in place, without a check of its weights. A new pod checks the weights.`
  return act(message, Action.RecordEvent({ reason: "FingerprintsDiffer", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false }))
}

/** Whether the engine gave other answers than the verified ones, at its start or later. */
export const answersDiffer = ({ boot }: Pick<Observation, "boot">): boolean => boot?.verdict?.outcome === "differs" || boot?.verdict?.outcome === "suspect"

/** Why a ready engine has no traffic, as the reason of a condition. Null if it has traffic or nothing withholds it. */
export const withheld = ({ boot, pod, run }: Pick<Observation, "boot" | "pod" | "run">): "AnswersDiffer" | "EngineNotReady" | null => {
  if (boot === null || pod === null || !pod.ready || pod.deleting || pod.lost !== null) return null
  if (run.endpoints.some((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)) return null
  return boot.verdict === null ? "EngineNotReady" : answersDiffer({ boot }) ? "AnswersDiffer" : null
}

/** Whether every attempt to compare the start failed. Its answers are then unknown. */
export const isUncompared = (observation: Observation): boolean =>
  observation.boot !== null && observation.boot.verdict === null && (endedOf(observation, "boot")?.attempts ?? 0) >= trialAttempts

/** Runs the comparison, or waits for its next attempt. `remark`: what follows from the failed attempts. */
const compare = (observation: Observation, now: number, remark = ""): Decision => {
  const ended = endedOf(observation, "boot")
  const next = ended === null ? now : ended.at + backoff(ended.attempts)
  if (observation.work.running === null && now < next) return wait(`${ended?.message}${remark} Seatrial repeats the comparison.`, next)
  return { ...wait(`Seatrial compares the engine's answers with the verified ones.${remark}`), work: "boot" }
}

/** Goes on to compare an engine that could not be compared, while others serve. An event says so once for each start. */
const compareOn = (observation: Observation, { uid }: ObservedPod, now: number): Decision => {
  const remark = " The engine could not be compared with the verified answers. It gets no traffic while other engines serve."
  const decision = compare(observation, now, remark)
  const isFirstRepeat = endedOf(observation, "boot")?.attempts === trialAttempts && decision.work !== null && observation.work.running === null
  const event = Action.RecordEvent({ reason: notCompared, about: uid, message: `${endedOf(observation, "boot")?.message}${remark}` })
  return isFirstRepeat ? { ...decision, actions: [event] } : decision
}

/** Keeps an engine with other answers without traffic: on another node, in a new pod, or until someone acts. */
const withhold = (observation: Observation, pod: ObservedPod, { failures, verdict }: ObservedBoot, othersServe: boolean): Decision => {
  const { uid } = pod
  const message = describeDifference(observation)
  const event = Action.RecordEvent({ reason: "FingerprintsDiffer", about: uid, message })
  if (failures < mostStarts && observation.elsewhere)
    return act(`${message} Another node is tried.`, event, Action.NoteNodeFault({ code: oneDiffers }), Action.RemovePod({ uid, force: false }))
  const replacement = replaceRestarted(observation)
  if (replacement !== null) return replacement
  // Recorded once for each start and node. If no engine serves, later deployments do not reuse the revision as verified.
  const isNoted = observation.run.nodeFaults.some(
    ({ at, code, node }) =>
      (code === startsDiffer || (othersServe && code === oneDiffers)) && at >= (verdict?.at ?? 0) && (pod.node === null || node === pod.node)
  )
  return act(
    `${message} Deploy the model again, or delete the engine's pod to start a new comparison.`,
    ...(isNoted ? [] : [event, Action.NoteNodeFault({ code: othersServe ? oneDiffers : startsDiffer })])
  )
}

/**
 * Compares a restarted engine with the verified answers before it gets traffic. Null if the answers match, or if the
 * comparison could not run and no other engine serves: a fault of the operator does not take a model out of service.
 */
export const compareFirst = (observation: Observation, now: number, othersServe = false): Decision | null => {
  const { boot, pod, run } = observation
  if (boot === null || pod === null) return null
  if (boot.verdict?.outcome === "differs") return withhold(observation, pod, boot, othersServe)
  if (boot.verdict !== null) return null
  if (!isUncompared(observation)) return compare(observation, now)
  return othersServe || (run.earlier ?? 0) > 0 ? compareOn(observation, pod, now) : null
}

/** Events to record when a restarted engine gets its first traffic. */
export const bootEvents = ({ boot, pod }: Observation): ReadonlyArray<Action> => {
  if (boot === null || pod === null) return []
  if (boot.verdict === null)
    return [
      Action.RecordEvent({
        reason: notCompared,
        about: pod.uid,
        message: "The engine's answers could not be compared with the verified ones. The engine serves anyway."
      })
    ]
  return boot.verdict.outcome === "drifted" ? [Action.RecordEvent({ reason: "FingerprintDrift", about: pod.uid, message: boot.verdict.message })] : []
}
