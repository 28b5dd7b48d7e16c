import { enginesOf } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import { Action, type Decision } from "./Decision.ts"
import { draining } from "./draining.ts"
import type { EngineObservation } from "./Rule.ts"
import { endpointOf } from "./traffic.ts"

/** The code that is recorded for the node of an engine whose probes differ from the trial. */
const answersChanged = "answers_changed"

/**
 * Alarms of a revision within a day after which its engines are no longer replaced. A new engine would not help: the
 * trial or the limit is wrong.
 */
const mostReplacements = 3

/**
 * What may happen to an engine with an alarm: `goes`: the model serves without it; `alone`: it does not, so the host class
 * decides; `stays`: another engine is replaced first.
 */
export type SuspectPart = "goes" | "alone" | "stays"

/** Whether the engine passed its start, but its probes since then differ from the trial. */
export const isSuspect = ({ boot }: Pick<Observation, "boot">): boolean => boot?.verdict?.outcome === "suspect"

/** The message about the first engine of the run whose probes differ from the trial; null if there is none. */
export const suspicionOf = (observation: Observation): string | null => {
  const suspect = enginesOf(observation).find(({ alone }) => isSuspect(alone) && alone.pod !== null)
  return suspect === undefined ? null : describe(suspect.alone)
}

const describe = ({ boot }: Observation): string => `The engine's answers differ from those of its trial: ${boot?.verdict?.message ?? ""}`

/** Records the alarm once, as an event and as a reason to avoid the node. A note about another node is about another engine. */
const notes = (observation: Observation, message: string): ReadonlyArray<Action> => {
  const { boot, pod, run } = observation
  if (pod === null) return []
  const isNoted = run.nodeFaults.some(
    ({ at, code, node }) => code === answersChanged && at >= (boot?.verdict?.at ?? 0) && (pod.node === null || node === pod.node)
  )
  if (isNoted) return []
  return [Action.RecordEvent({ reason: "AnswersChanged", about: pod.uid, message }), Action.NoteNodeFault({ code: answersChanged })]
}

/**
 * Withdraws an engine whose probes differ from the trial, lets it finish its requests, and deletes its pod. The next
 * pass starts another one, on another node if there is one. Null if the engine goes on: it is the last one and its host
 * class does not permit this, another one is replaced first, or replacing did not help.
 */
export const replaceSuspect = (observation: EngineObservation, now: number, part: SuspectPart): Decision | null => {
  const { boot, podClass } = observation
  if (boot === null || !isSuspect(observation)) return null
  const mayWithdraw = boot.failures <= mostReplacements && (part === "goes" || (part === "alone" && podClass?.sentinel?.withdrawLast === true))
  const isPublished = endpointOf(observation) !== undefined
  if (isPublished && !mayWithdraw) return null
  const message = `${describe(observation)} The engine is replaced.`
  const decision = draining(observation, now, message)
  return { ...decision, message, actions: [...notes(observation, message), ...decision.actions] }
}

/** For an engine that goes on although its probes differ: what to record, and a remark for its message. */
export const noteSuspect = (observation: Observation, part: SuspectPart): { readonly events: ReadonlyArray<Action>; readonly remark: string } => {
  if (!isSuspect(observation)) return { events: [], remark: "" }
  const why =
    (observation.boot?.failures ?? 0) > mostReplacements
      ? "Replacing engines of the model did not help. Deploy the model again."
      : part === "stays"
        ? "It goes on until another engine is replaced."
        : "It goes on because the model has no other engine. Delete its pod to replace it, or set sentinel.withdrawLast in the host class."
  const message = `${describe(observation)} ${why}`
  return { events: notes(observation, message), remark: ` ${message}` }
}
