import { Effect } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "../suite/Check.ts"
import { beginnings, hasScores } from "../suite/likelihood.ts"
import { type SuiteSubject, scoreOf } from "../suite/SuiteSubject.ts"
import { likelihoodTexts } from "../suite/texts/likelihoodTexts.ts"

/**
 * `times`: the adapter's distance from its base must be this many times the base's distance from itself. `nats`: the
 * least distance per token. From the merged model the adapter may be at most `share` of the base's distance, or
 * `rounding`. An adapter with one of seven projections not applied exceeds that, even if hardly any answer shows it.
 */
const limits = { times: 3, nats: 0.0005, share: 0.2, rounding: 0.05 } as const

/** The mean distance between log-probabilities of the same tokens, in nats; null if the tokens differ. */
export const meanDistance = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number | null =>
  a.length === 0 || a.length !== b.length ? null : a.reduce((sum, value, at) => sum + Math.abs(value - (b[at] ?? 0)), 0) / a.length

/** Whether an adapter changes the log-probabilities of its base by more than the base differs from itself. */
export const hasEffect = (fromBase: number, ofBase: number): boolean => fromBase >= limits.times * ofBase && fromBase > limits.nats

/**
 * Whether an adapter gives the log-probabilities of the merged model. `fromMerged`: the adapter's distance from it,
 * `ofBase`: the base's distance.
 */
export const isAsMerged = (fromMerged: number, ofBase: number): boolean => fromMerged <= Math.max(limits.rounding, limits.share * ofBase)

/** Log-probabilities of all texts of the suite in sequence; null if the engine reports none for prompts. */
export const scoreTexts = Effect.fnUntraced(function* (subject: SuiteSubject) {
  const scored: Array<number> = []
  const prompts = yield* beginnings(
    subject,
    likelihoodTexts.map(({ text }) => text)
  )
  for (const prompt of prompts.filter(hasScores)) {
    const values = yield* scoreOf(subject, prompt)
    if (values === null) return null
    scored.push(...values)
  }
  return scored
})

const scores = (subject: SuiteSubject) =>
  Effect.flatMap(scoreTexts(subject), (scored) =>
    scored === null ? Effect.fail(new NotApplicable({ reason: "no log-probabilities of prompts" })) : Effect.succeed(scored)
  )

/** The adapter gives the log-probabilities of the merged model. `distances`: the figures so far. */
const compareWithMerged = Effect.fnUntraced(function* (fromMerged: number | null, mergedFromBase: number | null, distances: string) {
  if (fromMerged === null || mergedFromBase === null) return yield* unexpected("adapter and merged model count the tokens of a text differently")
  const both = `distance to the merged model ${fromMerged.toFixed(4)} (base: ${mergedFromBase.toFixed(4)})`
  return isAsMerged(fromMerged, mergedFromBase) ? `${distances}; ${both}` : yield* unexpected(`${both}; ${distances}`, { code: "fidelity_failed" })
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
    const [fromBase, ofBase] = [meanDistance(first, adapter), meanDistance(first, yield* scores(base))]
    if (fromBase === null || ofBase === null) return yield* unexpected("adapter and base count the tokens of a text differently")
    const distances = `distance to the base ${fromBase.toFixed(4)} nats per token (base to itself, asked twice: ${ofBase.toFixed(4)}), ${first.length} tokens`
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
    return merged === null ? distances : yield* compareWithMerged(meanDistance(adapter, merged), mergedFromBase, distances)
  })
}
