import { evidenceToMoveBack } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import type { AnswerCounts, ObservedMove } from "../observation/ObservedMove.ts"
import { Action, act, type Decision } from "./Decision.ts"

const shareOf = ({ answered, failed }: AnswerCounts): string => `${failed} of ${answered + failed}`

/** How long engines may start without one becoming ready: two starts, milliseconds. */
const patience = ({ podClass }: Observation): number => 2 * (podClass?.bootDeadlineSeconds ?? Number.POSITIVE_INFINITY) * 1_000

/** Why the model returns to its earlier revision; null if it does not. */
const reasonOf = (observation: Observation, { earlier, evidence, own, startingMillis }: ObservedMove): string | null => {
  if (evidence >= evidenceToMoveBack)
    return `${shareOf(own)} requests failed on engines of the new revision, and ${shareOf(earlier)} on engines of the earlier one.`
  if (startingMillis < patience(observation)) return null
  return `Engines of the new revision started for ${Math.round(startingMillis / 60_000)} minutes, and none became ready.`
}

/**
 * The model returns to its earlier revision, which still answers, if the new one fails more requests, or if its engines
 * do not start.
 */
export const movesBack = (observation: Observation): Decision | null => {
  const { move = null } = observation
  const reason = move === null ? null : reasonOf(observation, move)
  return move === null || reason === null ? null : act(`The model returns to its earlier revision. ${reason}`, Action.MoveBack({ to: move.to, reason }))
}
