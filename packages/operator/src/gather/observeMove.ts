import { type MoveAnswers, type Run, Runs } from "@seatrial/store"
import { Effect, Option } from "effect"
import { addInterval, type Comparison, evidenceOf, noComparison } from "../observation/comparison.ts"
import type { AnswerCounts, ObservedMove } from "../observation/ObservedMove.ts"
import type { GatherMemory } from "./GatherMemory.ts"

type Counters = ReadonlyMap<string, AnswerCounts>

/** What the operator remembers of a move. After a restart it reads all counters as one interval. */
export interface KnownMove {
  readonly to: ObservedMove["to"]
  /** The last state of each counter. */
  readonly counters: Counters
  readonly comparison: Comparison
  /** Engines of the new revision that a gateway had reached, at most, and since when. */
  readonly serving: number
  readonly progressAt: number
}

const none: AnswerCounts = { answered: 0, failed: 0 }
const add = (one: AnswerCounts, other: AnswerCounts): AnswerCounts => ({ answered: one.answered + other.answered, failed: one.failed + other.failed })

/** What a counter grew by. */
const growth = (now: AnswerCounts, before: AnswerCounts = none): AnswerCounts => ({
  answered: Math.max(0, now.answered - before.answered),
  failed: Math.max(0, now.failed - before.failed)
})

const compared = ({ comparison, counters: known }: Pick<KnownMove, "comparison" | "counters">, { counters }: MoveAnswers): Comparison => {
  const grownBy = (isEarlier: boolean) =>
    counters.filter((counter) => counter.isEarlier === isEarlier).reduce((all, counter) => add(all, growth(counter, known.get(counter.key))), none)
  return addInterval(comparison, grownBy(false), grownBy(true))
}

/** The move to the run's revision, if the model can return from it; null if there is none. */
export const observeMove = Effect.fnUntraced(function* (
  { moves }: Pick<GatherMemory, "moves">,
  run: Run,
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
  const known = last?.to === to ? last : { counters: new Map(), comparison: noComparison, serving: 0, progressAt: now }
  const serving = run.endpoints.filter(({ reachable }) => reachable).length
  const hasProgress = serving > known.serving
  const next: KnownMove = {
    to,
    counters: new Map([...known.counters, ...counters.map(({ answered, failed, key }) => [key, { answered, failed }] as const)]),
    comparison: compared(known, answers),
    serving: Math.max(serving, known.serving),
    progressAt: hasProgress ? now : Math.min(now, known.progressAt)
  }
  moves.set(run.id, next)
  const { comparison, progressAt } = next
  return { to, own: comparison.own, earlier: comparison.earlier, evidence: evidenceOf(comparison), progressAt }
})
