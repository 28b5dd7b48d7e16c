import { type MoveAnswers, type Run, Runs } from "@seatrial/store"
import { Effect, Option } from "effect"
import { moveInterval } from "../limits.ts"
import { addInterval, type Comparison, evidenceOf, noComparison } from "../observation/comparison.ts"
import { type AnswerCounts, addAnswers, noAnswers, type ObservedMove } from "../observation/ObservedMove.ts"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { GatherMemory } from "./GatherMemory.ts"

/** What the operator remembers of a move. After a restart it reads all counters as one interval. */
export interface KnownMove {
  readonly to: ObservedMove["to"]
  /** The last state of each counter. */
  readonly counters: ReadonlyMap<string, AnswerCounts>
  readonly comparison: Comparison
  /** The most engines of the new revision that gateways had reached. */
  readonly serving: number
  /** When the move was last observed, Unix milliseconds. */
  readonly at: number
  readonly startingMillis: number
}

/**
 * The time between two observations counts as this long at most, milliseconds. What happened in a longer pause is
 * unknown.
 */
const longestInterval = 10 * moveInterval

/** What a counter grew by. */
const growth = (now: AnswerCounts, before: AnswerCounts = noAnswers): AnswerCounts => ({
  answered: Math.max(0, now.answered - before.answered),
  failed: Math.max(0, now.failed - before.failed)
})

const compared = ({ comparison, counters: known }: Pick<KnownMove, "comparison" | "counters">, { counters }: MoveAnswers): Comparison => {
  const grownBy = (isEarlier: boolean) =>
    counters.filter((counter) => counter.isEarlier === isEarlier).reduce((all, counter) => addAnswers(all, growth(counter, known.get(counter.key))), noAnswers)
  return addInterval(comparison, grownBy(false), grownBy(true))
}

const isStarting = (pod: ObservedPod | null): boolean => pod?.scheduled === true && !pod.ready && !pod.deleting

/** The move to the run's revision, if the model can return from it; null if there is none. */
export const observeMove = Effect.fnUntraced(function* (
  { moves }: Pick<GatherMemory, "moves">,
  run: Run,
  pods: ReadonlyArray<ObservedPod | null>,
  now: number
): Effect.fn.Return<ObservedMove | null, never, Runs> {
  const isMoving = (run.earlier ?? 0) > 0 && run.engineRun === run.id && run.phase === "activated"
  const answers = isMoving ? Option.getOrNull(yield* (yield* Runs).moveAnswers(run.id, run.orgId)) : null
  if (answers === null) {
    moves.delete(run.id)
    return null
  }
  const { counters, to } = answers
  const last = moves.get(run.id)
  const known = last?.to === to ? last : { counters: new Map(), comparison: noComparison, serving: 0, at: now, startingMillis: 0 }
  const serving = run.endpoints.filter(({ reachable }) => reachable).length
  const passed = pods.some(isStarting) ? Math.min(longestInterval, Math.max(0, now - known.at)) : 0
  const next: KnownMove = {
    to,
    counters: new Map([...known.counters, ...counters.map(({ answered, failed, key }) => [key, { answered, failed }] as const)]),
    comparison: compared(known, answers),
    serving: Math.max(serving, known.serving),
    at: now,
    startingMillis: serving > known.serving ? 0 : known.startingMillis + passed
  }
  moves.set(run.id, next)
  const { comparison, startingMillis } = next
  return { to, own: comparison.own, earlier: comparison.earlier, evidence: evidenceOf(comparison), startingMillis }
})
