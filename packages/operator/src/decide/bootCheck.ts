import { startsDiffer } from "@seatrial/domain"
import { backoff, trialAttempts } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import { endedOf } from "../observation/work.ts"
import { Action, act, type Decision, wait } from "./Decision.ts"

/** Consecutive starts with different answers after which the model stays without traffic. */
const mostStarts = 2

/** The message for an engine that gives other answers than the verified ones. */
export const describeDifference = (observation: Observation): string =>
  `The engine's answers differ from the verified ones: ${observation.boot?.verdict?.message ?? ""} It gets no traffic.`

/**
 * Replaces the pod if its answers differ after its container was restarted in place. The init container that checks the
 * weights runs only once per pod. In a new pod it finds altered weights, and the operator downloads them again. This
 * happens once, because the next start is the second one. Null if a new pod cannot help.
 */
export const replaceRestarted = (observation: Observation): Decision | null => {
  const { boot, pod } = observation
  if (boot === null || pod === null || pod.restarts === 0 || boot.failures >= mostStarts) return null
  const message = `${describeDifference(observation)} It restarted in its pod, where nothing checked its weights first. A new pod is created, which checks them.`
  return act(message, Action.Tell({ reason: "FingerprintsDiffer", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false }))
}

/** Why a ready engine has no traffic, as the reason of a condition. Null if it has traffic or nothing withholds it. */
export const withheld = ({ boot, pod, run }: Pick<Observation, "boot" | "pod" | "run">): "AnswersDiffer" | "EngineNotReady" | null => {
  if (boot === null || pod === null || !pod.ready || pod.deleting || pod.lost !== null) return null
  if (run.endpoints.some((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)) return null
  return boot.verdict === null ? "EngineNotReady" : boot.verdict.outcome === "differs" ? "AnswersDiffer" : null
}

/**
 * Compares a restarted engine with the verified answers before it gets traffic. Null if the answers match or the
 * comparison could not run: a fault of the operator does not take a model out of service.
 */
export const compareFirst = (observation: Observation, now: number): Decision | null => {
  const { boot, elsewhere, pod, run, work } = observation
  if (boot === null || pod === null) return null
  if (boot.verdict === null) {
    const ended = endedOf(observation, "boot")
    if (ended !== null && ended.attempts >= trialAttempts) return null
    const next = ended === null ? now : ended.at + backoff(ended.attempts)
    if (work.running === null && now < next) return wait(`${ended?.message} It is retried.`, next)
    return { ...wait("Compares the engine's answers with the verified ones."), work: "boot" }
  }
  if (boot.verdict.outcome !== "differs") return null
  const message = describeDifference(observation)
  const event = Action.Tell({ reason: "FingerprintsDiffer", about: pod.uid, message })
  if (boot.failures < mostStarts && elsewhere)
    return act(
      `${message} Another node is tried.`,
      event,
      Action.NoteNodeFault({ code: "fingerprints_differ" }),
      Action.RemovePod({ uid: pod.uid, force: false })
    )
  const replacement = replaceRestarted(observation)
  if (replacement !== null) return replacement
  // Recorded once for each start. Later deployments then no longer reuse the revision as verified.
  const noted = run.nodeFaults.some((fault) => fault.code === startsDiffer && fault.at >= (boot.verdict?.at ?? 0))
  return act(
    `${message} Deploy it again, or delete its pod to start a new comparison.`,
    ...(noted ? [] : [event, Action.NoteNodeFault({ code: startsDiffer })])
  )
}

/** Events to record when a restarted engine gets its first traffic. */
export const bootEvents = ({ boot, pod }: Observation): ReadonlyArray<Action> => {
  if (boot === null || pod === null) return []
  if (boot.verdict === null)
    return [
      Action.Tell({
        reason: "StartNotCompared",
        about: pod.uid,
        message: "The engine's answers could not be compared with the verified ones. It serves anyway."
      })
    ]
  return boot.verdict.outcome === "drifted" ? [Action.Tell({ reason: "FingerprintDrift", about: pod.uid, message: boot.verdict.message })] : []
}
