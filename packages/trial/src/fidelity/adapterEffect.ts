import { Effect } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "../suite/Check.ts"
import { beginnings, hasScores } from "../suite/likelihood.ts"
import { type SuiteSubject, scoreOf } from "../suite/SuiteSubject.ts"
import { likelihoodTexts } from "../suite/texts/likelihoodTexts.ts"
import { thresholds } from "../suite/thresholds.ts"

/**
 * `times`: the adapter's distance from its base must be this many times the base's distance from itself. `nats`: the
 * least distance per token. From the merged model the adapter may be at most `share` of the base's distance,
 * `noise` times the base's distance from itself, or `floor`. Of the merged model's difference from the base it must show
 * the whole, up to `slope` and what rounding hides.
 */
const limits = { times: 3, nats: 0.0005, share: 0.05, noise: 4, floor: { exact: 0.02, rounded: 0.06 }, slope: 0.03 } as const

/** The mean distance between log-probabilities of the same tokens, in nats; null if the tokens differ. */
export const meanDistance = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number | null =>
  a.length === 0 || a.length !== b.length ? null : a.reduce((sum, value, at) => sum + Math.abs(value - (b[at] ?? 0)), 0) / a.length

/** Whether an adapter changes the log-probabilities of its base by more than the base differs from itself. */
export const hasEffect = (fromBase: number, ofBase: number): boolean => fromBase >= limits.times * ofBase && fromBase > limits.nats

/** The base's distance from itself, and whether the engine computes in 32 bits. */
export interface Rounding {
  readonly ofBase: number
  readonly isExact: boolean
}

/** The distance in nats that rounding alone may cause between two ways to compute a model. */
const roundingOf = ({ isExact, ofBase }: Rounding) => Math.max(isExact ? limits.floor.exact : limits.floor.rounded, limits.noise * ofBase)

/**
 * Whether an adapter gives the log-probabilities of the merged model. `fromMerged`: the adapter's distance from it,
 * `mergedFromBase`: the base's distance.
 */
export const isAsMerged = (fromMerged: number, mergedFromBase: number, rounding: Rounding): boolean =>
  fromMerged <= Math.max(roundingOf(rounding), limits.share * mergedFromBase)

/**
 * The part of the merged model's difference from the base that the adapter shows: the slope of a line through the
 * differences of all tokens. A scale shows in it far better than in distances, because rounding has no direction.
 */
export const slopeOf = (base: ReadonlyArray<number>, adapter: ReadonlyArray<number>, merged: ReadonlyArray<number>): number => {
  let [both, ofMerged] = [0, 0]
  for (const [at, value] of base.entries()) {
    const difference = (merged[at] ?? value) - value
    both += difference * ((adapter[at] ?? value) - value)
    ofMerged += difference * difference
  }
  return both / ofMerged
}

/** Whether the slope is 1. Rounding of the merged model flattens it by its share of the squared differences. */
export const isWhole = (slope: number, base: ReadonlyArray<number>, merged: ReadonlyArray<number>, rounding: Rounding): boolean => {
  const squares = base.reduce((sum, value, at) => sum + ((merged[at] ?? value) - value) ** 2, 0)
  // The squared distance of normally distributed rounding is about 1.6 times the square of its mean distance.
  return Math.abs(slope - 1) <= limits.slope + (1.6 * base.length * roundingOf(rounding) ** 2) / squares
}

/** Log-probabilities of all texts of the suite in their order; null if the engine reports none for prompts. */
export const scoreTexts = Effect.fnUntraced(function* (subject: SuiteSubject, concurrency = 1) {
  const prompts = yield* beginnings(
    subject,
    likelihoodTexts.map(({ text }) => text)
  )
  const scored = yield* Effect.forEach(prompts.filter(hasScores), (prompt) => scoreOf(subject, prompt), { concurrency })
  const values = scored.flatMap((each) => each ?? [])
  return scored.includes(null) ? null : values
})

const scores = (subject: SuiteSubject, concurrency?: number) =>
  Effect.flatMap(scoreTexts(subject, concurrency), (scored) =>
    scored === null ? Effect.fail(new NotApplicable({ reason: "no log-probabilities of prompts" })) : Effect.succeed(scored)
  )

interface Scores {
  readonly base: ReadonlyArray<number>
  readonly adapter: ReadonlyArray<number>
  readonly merged: ReadonlyArray<number>
}

/** The adapter gives the log-probabilities of the merged model. `distances`: the figures so far. */
const compareWithMerged = Effect.fnUntraced(function* ({ adapter, base, merged }: Scores, rounding: Rounding, distances: string) {
  const [fromMerged, mergedFromBase] = [meanDistance(adapter, merged), meanDistance(base, merged)]
  if (fromMerged === null || mergedFromBase === null) return yield* unexpected("adapter and merged model count the tokens of a text differently")
  const slope = slopeOf(base, adapter, merged)
  const both = `distance to the merged model ${fromMerged.toFixed(4)} (base: ${mergedFromBase.toFixed(4)}), ${slope.toFixed(3)} of its effect`
  return isAsMerged(fromMerged, mergedFromBase, rounding) && isWhole(slope, base, merged, rounding)
    ? `${distances}; ${both}`
    : yield* unexpected(`${both}; ${distances}`, { code: "fidelity_failed" })
})

/**
 * Detects an adapter that the engine accepted but does not apply completely, even if it is too weak to change answers.
 */
export const adapterEffect: TrialCheck = {
  name: "adapter_effect",
  class: "required",
  purpose: "With the adapter the suite's texts are as likely as to the merged model, and not as likely as to the base alone",
  skipped: ({ baseName }) => (baseName === undefined ? "no adapter" : null),
  limitSeconds: seconds(60),
  run: Effect.fnUntraced(function* (subject) {
    if (subject.baseName === undefined) return yield* new NotApplicable({ reason: "no adapter" })
    const base = { ...subject, servedName: subject.baseName }
    const first = yield* scores(base)
    const adapter = yield* scores(subject)
    // In a batch an engine adds numbers in another order, which shows how much it rounds.
    const [fromBase, ofBase] = [meanDistance(first, adapter), meanDistance(first, yield* scores(base, thresholds.batchedTexts))]
    if (fromBase === null || ofBase === null) return yield* unexpected("adapter and base count the tokens of a text differently")
    const distances = `distance to the base ${fromBase.toFixed(4)} nats per token (base to itself, alone and in a batch: ${ofBase.toFixed(4)}), ${first.length} tokens`
    const merged = subject.merged?.scores ?? null
    const mergedFromBase = merged === null ? null : meanDistance(first, merged)
    if (!hasEffect(fromBase, ofBase)) {
      const isEmpty = mergedFromBase !== null && !hasEffect(mergedFromBase, ofBase)
      return yield* isEmpty
        ? unexpected(`${distances}; merged into its base it changes nothing either: ${mergedFromBase.toFixed(4)} from the base`, {
            cause: "adapter_without_effect"
          })
        : unexpected(distances)
    }
    const rounding = { ofBase, isExact: subject.offers.exactArithmetic === true }
    return merged === null ? distances : yield* compareWithMerged({ base: first, adapter, merged }, rounding, distances)
  })
}
