import { startsDiffer } from "@seatrial/domain"
import { Action, act, type Decision, wait } from "./Decision.ts"
import { backoff, trialAttempts } from "./limits.ts"
import { endedOf, type Observation } from "./Observation.ts"

/** Tries of an engine's start on other nodes, before its model stays without traffic. */
const mostStarts = 2

/** How to say it and what to do where an engine answers otherwise than what was verified. */
export const answersOtherwise = (seen: Observation): string =>
  `The engine answers otherwise than the one that was verified: ${seen.boot?.verdict?.message ?? ""} It gets no traffic.`

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
  if (boot.failures >= mostStarts || !elsewhere) {
    // Noted once of each start: a later deployment does not take the revision for verified then.
    const noted = run.nodeFaults.some((fault) => fault.code === startsDiffer && fault.at >= (boot.verdict?.at ?? 0))
    return act(`${message} Deploy it again, or delete its pod, so that it is tried anew.`, ...(noted ? [] : [Action.NoteNodeFault({ code: startsDiffer })]))
  }
  const told = Action.Tell({ reason: "FingerprintsDiffer", about: pod.uid, message })
  return act(`${message} Another node is tried.`, told, Action.NoteNodeFault({ code: "fingerprints_differ" }), Action.RemovePod({ uid: pod.uid, force: false }))
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
