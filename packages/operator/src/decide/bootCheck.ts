import { startsDiffer } from "@seatrial/domain"
import { Action, act, type Decision, wait } from "./Decision.ts"
import { backoff, trialAttempts } from "./limits.ts"
import { endedOf, type Observation } from "./Observation.ts"

/** Starts in a row that answer otherwise, before the model stays without traffic. */
const mostStarts = 2

/** How to say it and what to do where an engine answers otherwise than what was verified. */
export const answersOtherwise = (seen: Observation): string =>
  `The engine answers otherwise than the one that was verified: ${seen.boot?.verdict?.message ?? ""} It gets no traffic.`

/**
 * Another pod for an engine that answers otherwise since its container was started again in its pod: there its first container, which looks at the weights, runs only once,
 * and what was altered since is found, and brought anew, before a new one starts. Once: the start after that is the second. Null where that is no use.
 */
export const inAnotherPod = (seen: Observation): Decision | null => {
  const { boot, pod } = seen
  if (boot === null || pod === null || pod.restarts === 0 || boot.failures >= mostStarts) return null
  const message = `${answersOtherwise(seen)} It was started again in its pod, where nothing looked at its weights first. Another pod is made, which does.`
  return act(message, Action.Tell({ reason: "FingerprintsDiffer", about: pod.uid, message }), Action.RemovePod({ uid: pod.uid, force: false }))
}

/** Why an engine that is ready has no traffic, as a reason of its condition; null where it has some, or where nothing keeps it from that. */
export const withheld = ({ boot, pod, run }: Pick<Observation, "boot" | "pod" | "run">): "AnswersDiffer" | "EngineNotReady" | null => {
  if (boot === null || pod === null || !pod.ready || pod.deleting || pod.lost !== null) return null
  if (run.endpoints.some((endpoint) => endpoint.url === pod.url && endpoint.pod === pod.name)) return null
  return boot.verdict === null ? "EngineNotReady" : boot.verdict.outcome === "differs" ? "AnswersDiffer" : null
}

/**
 * What comes before an engine that has started again gets traffic: it has to give the answers that its revision was verified with. Null where it does, or nobody could ask
 * it: what we cannot do takes no model away.
 */
export const compareFirst = (seen: Observation, now: number): Decision | null => {
  const { boot, elsewhere, pod, run, work } = seen
  if (boot === null || pod === null) return null
  if (boot.verdict === null) {
    const ended = endedOf(seen, "boot")
    if (ended !== null && ended.attempts >= trialAttempts) return null
    const next = ended === null ? now : ended.at + backoff(ended.attempts)
    if (work.running === null && now < next) return wait(`${ended?.message} Tries again.`, next)
    return { ...wait("Compares what the engine answers with what was verified."), work: "boot" }
  }
  if (boot.verdict.outcome !== "differs") return null
  const message = answersOtherwise(seen)
  const told = Action.Tell({ reason: "FingerprintsDiffer", about: pod.uid, message })
  if (boot.failures < mostStarts && elsewhere)
    return act(
      `${message} Another node is tried.`,
      told,
      Action.NoteNodeFault({ code: "fingerprints_differ" }),
      Action.RemovePod({ uid: pod.uid, force: false })
    )
  const another = inAnotherPod(seen)
  if (another !== null) return another
  // Told and noted once of each start: a later deployment does not take the revision for verified then.
  const noted = run.nodeFaults.some((fault) => fault.code === startsDiffer && fault.at >= (boot.verdict?.at ?? 0))
  return act(`${message} Deploy it again, or delete its pod, so that it is tried anew.`, ...(noted ? [] : [told, Action.NoteNodeFault({ code: startsDiffer })]))
}

/** What is told beside the first traffic of an engine that has started again. */
export const toldOfBoot = ({ boot, pod }: Observation): ReadonlyArray<Action> => {
  if (boot === null || pod === null) return []
  if (boot.verdict === null)
    return [
      Action.Tell({ reason: "StartNotCompared", about: pod.uid, message: "The engine could not be asked what it was verified with. It serves all the same." })
    ]
  return boot.verdict.outcome === "drifted" ? [Action.Tell({ reason: "FingerprintDrift", about: pod.uid, message: boot.verdict.message })] : []
}
