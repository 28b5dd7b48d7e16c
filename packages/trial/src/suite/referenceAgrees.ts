import type { ModelReference } from "@seatrial/domain"
import { Effect } from "effect"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { goOn, type SuiteSubject, scoreOf } from "./SuiteSubject.ts"
import { extentOf, thresholds } from "./thresholds.ts"

/** The differences of log-probabilities of the tokens whose positions are from `from` up to `to`, without `to`. */
interface Window {
  readonly from: number
  readonly to: number
  readonly differences: ReadonlyArray<number>
}

/** How far an engine is from the reference in one window, in nats per token. */
export interface WindowDistance {
  readonly from: number
  readonly to: number
  readonly tokens: number
  /** The mean difference, without its sign. Rounding hardly changes it; a fault makes texts less likely. */
  readonly mean: number
  readonly absolute: number
  /** The difference of one token. */
  readonly worst: number
}

type Scored = ReadonlyArray<ReadonlyArray<number>>

const sum = (values: ReadonlyArray<number>) => values.reduce((all, value) => all + value, 0)

/** The distance of each window that has tokens. The first value of a sequence belongs to its token at position 1. */
export const windowDistances = (engine: Scored, reference: Scored): ReadonlyArray<WindowDistance> => {
  const edges = thresholds.referenceWindows
  const windows = edges.slice(1).map((to, index): Window => {
    const from = edges[index] ?? 0
    const differences = engine.flatMap((values, sequence) =>
      values.flatMap((value, at) => (at + 1 >= from && at + 1 < to ? [value - (reference[sequence]?.[at] ?? Number.NaN)] : []))
    )
    return { from, to, differences }
  })
  return windows
    .filter(({ differences }) => differences.length > 0)
    .map(({ differences, from, to }) => {
      const absolute = differences.map(Math.abs)
      const tokens = differences.length
      return { from, to, tokens, mean: Math.abs(sum(differences) / tokens), absolute: sum(absolute) / tokens, worst: Math.max(...absolute) }
    })
}

/** The largest distance that a window may have, in nats per token. */
type Limits = Pick<WindowDistance, "mean" | "absolute" | "worst">

/**
 * The limits of an engine. Kernels for packed weights may round activations too, by engine and GPU, and no such engine
 * was measured.
 */
export const limitsOf = ({ reducesPrecision, repository }: Pick<SuiteSubject, "reducesPrecision" | "repository">): Limits =>
  reducesPrecision === true || repository.config.quantization !== "none" ? thresholds.reducedReference : thresholds.reference

/** How far a distance is beyond its limits: the largest share of a limit. A value that is no number is beyond all. */
const shareOf = ({ absolute, mean, worst }: WindowDistance, most: Limits): number => {
  const share = Math.max(mean / most.mean, absolute / most.absolute, worst / most.worst)
  return Number.isNaN(share) ? Number.POSITIVE_INFINITY : share
}

/** The window that is farthest from the reference. */
export const worstWindow = (distances: ReadonlyArray<WindowDistance>, most: Limits): WindowDistance | undefined =>
  distances.toSorted((one, other) => shareOf(other, most) - shareOf(one, most))[0]

export const isWithin = (distance: WindowDistance, most: Limits): boolean => shareOf(distance, most) <= 1

/** The sequences as far as this trial scores them: less of a small model, and never more than the context. */
const sequencesFor = ({ maxContext, parameters }: SuiteSubject, { sequences }: ModelReference) => {
  const { likelihoodTokens } = extentOf(parameters)
  const most = Math.min(2 * likelihoodTokens, maxContext - 1)
  // The longest sequence joins texts to reach later positions; of the others the beginning suffices.
  const longest = Math.max(...sequences.map(({ ids }) => ids.length))
  return sequences
    .map(({ ids, logprobs }) => {
      const tokens = ids.length === longest ? most : Math.min(likelihoodTokens, most)
      return { ids: ids.slice(0, tokens), logprobs: logprobs.slice(0, Math.max(0, tokens - 1)) }
    })
    .filter(({ logprobs }) => logprobs.length > 0)
}

/** At how many tokens of a greedy continuation the engine agrees with the reference until the first that differs. */
const sameTokens = Effect.fnUntraced(function* (subject: SuiteSubject, { ids, prompt }: ModelReference["continuations"][number]) {
  if (prompt.length + ids.length > subject.maxContext) return null
  const answer = yield* goOn(subject, prompt, { max_tokens: ids.length, ignore_eos: true, return_token_ids: true })
  if (answer.ids === null) return null
  const differs = ids.findIndex((id, at) => id !== answer.ids?.[at])
  return `${differs === -1 ? ids.length : differs}/${ids.length}`
})

const compare = Effect.fnUntraced(function* (subject: SuiteSubject, reference: ModelReference) {
  const sequences = sequencesFor(subject, reference)
  const scored: Array<ReadonlyArray<number>> = []
  for (const { ids, logprobs } of sequences) {
    const values = yield* scoreOf(subject, ids)
    if (values === null) return yield* new NotApplicable({ reason: "no log-probabilities of prompts" })
    if (values.length !== logprobs.length) return yield* unexpected(`${values.length} log-probabilities for ${ids.length} tokens, expected ${logprobs.length}`)
    scored.push(values)
  }
  const distances = windowDistances(
    scored,
    sequences.map(({ logprobs }) => logprobs)
  )
  const most = limitsOf(subject)
  const worst = worstWindow(distances, most)
  if (worst === undefined) return yield* new NotApplicable({ reason: "no_reference" })
  const figures = `mean ${worst.mean.toFixed(4)}, absolute ${worst.absolute.toFixed(4)}, one ${worst.worst.toFixed(2)} from Transformers ${reference.transformers} at ${worst.from} to ${worst.to - 1}, the worst of ${distances.length} windows`
  return isWithin(worst, most) ? figures : yield* unexpected(figures)
})

/**
 * The engine gives the log-probabilities that an independent implementation computed for the commit. Of an adapter, its
 * base is compared. Greedy answers only inform: near ties may be decided differently.
 */
export const referenceAgrees: TrialCheck = {
  name: "reference_agrees",
  class: "required",
  purpose: "The engine's log-probabilities are those of an independent implementation",
  limitSeconds: seconds(60),
  skipped: ({ reference }) => (reference == null ? "no_reference" : null),
  run: Effect.fnUntraced(function* ({ baseName, ...subject }) {
    const { reference } = subject
    if (reference == null) return yield* new NotApplicable({ reason: "no_reference" })
    const base = { ...subject, servedName: baseName ?? subject.servedName }
    const figures = yield* compare(base, reference)
    const same: Array<string> = []
    for (const continuation of reference.continuations) {
      const tokens = yield* sameTokens(base, continuation)
      if (tokens !== null) same.push(tokens)
    }
    return same.length === 0 ? figures : `${figures}; greedy ${same.join(", ")}`
  })
}
