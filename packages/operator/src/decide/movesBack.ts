import { evidenceToMoveBack } from "../limits.ts"
import { enginesOf } from "../observation/engines.ts"
import type { Observation } from "../observation/Observation.ts"
import type { ObservedMove } from "../observation/ObservedMove.ts"
import { Action, act, type Decision } from "./Decision.ts"
import { isGood } from "./fleet.ts"

const shareOf = ({ answered, failed }: { readonly answered: number; readonly failed: number }): string => `${failed} of ${answered + failed}`

/** How long no further engine of the new revision may become ready while one has its node: two starts. */
const patience = ({ podClass }: Observation): number => 2 * (podClass?.bootDeadlineSeconds ?? Number.POSITIVE_INFINITY) * 1_000

/** Whether an engine of the new revision has its node but does not serve, for so long that it will not. */
const isStuck = (observation: Observation, progressAt: number, now: number): boolean =>
  now - progressAt >= patience(observation) && enginesOf(observation).some((member) => member.alone.pod?.scheduled === true && !isGood(member))

/** Why the model returns to its earlier revision, which still answers; null if it does not. */
const reasonOf = (observation: Observation, move: ObservedMove, now: number): string | null => {
  if (move.evidence >= evidenceToMoveBack)
    return `${shareOf(move.own)} requests failed on the engines of the new revision, and ${shareOf(move.earlier)} on those of the earlier one.`
  if (!isStuck(observation, move.progressAt, now)) return null
  return `No further engine of the new revision became ready for ${Math.round((now - move.progressAt) / 60_000)} minutes.`
}

/** The model returns to its earlier revision if the new one fails more requests, or if its engines do not start. */
export const movesBack = (observation: Observation, now: number): Decision | null => {
  const { move = null } = observation
  const reason = move === null ? null : reasonOf(observation, move, now)
  return move === null || reason === null ? null : act(`The model returns to its earlier revision. ${reason}`, Action.MoveBack({ to: move.to, reason }))
}
