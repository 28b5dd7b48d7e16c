import type { ModelReference } from "@seatrial/domain"
import { Effect } from "effect"
import { drawer } from "../promptTokens.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import { goOn, type SuiteSubject, scoreOf } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"
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
 * The limits of an engine for constant and drawn sequences. Kernels for packed weights may round activations too, by
 * engine and GPU, and no such engine was measured.
 */
export const limitsOf = ({
  reducesPrecision,
  repository
}: Pick<SuiteSubject, "reducesPrecision" | "repository">): { readonly constant: Limits; readonly drawn: Limits } =>
  reducesPrecision === true || repository.config.quantization !== "none"
    ? { constant: thresholds.reducedReference, drawn: thresholds.reducedDrawnReference }
    : { constant: thresholds.reference, drawn: thresholds.drawnReference }

/** How far a distance is beyond its limits: the largest share of a limit. A value that is no number is beyond all. */
const shareOf = ({ absolute, mean, worst }: WindowDistance, most: Limits): number => {
  const share = Math.max(mean / most.mean, absolute / most.absolute, worst / most.worst)
  return Number.isNaN(share) ? Number.POSITIVE_INFINITY : share
}

/** The window that is farthest from the reference. */
export const worstWindow = (distances: ReadonlyArray<WindowDistance>, most: Limits): WindowDistance | undefined =>
  distances.toSorted((one, other) => shareOf(other, most) - shareOf(one, most))[0]

export const isWithin = (distance: WindowDistance, most: Limits): boolean => shareOf(distance, most) <= 1

type Sequences = ModelReference["sequences"]

/** All constant sequences, and the drawn ones that a trial with this seed compares. */
export const sequencesOf = (
  seed: number,
  { drawn = 0, sequences }: Pick<ModelReference, "drawn" | "sequences">
): { readonly constant: Sequences; readonly drawn: Sequences } => {
  const constant = sequences.slice(0, sequences.length - drawn)
  const pool = sequences.slice(constant.length)
  const draw = drawer(seedOf(seed, "reference_agrees"))
  const chosen = Array.from({ length: Math.min(thresholds.referenceDrawn, drawn) }, () => pool.splice(draw(pool.length), 1)).flat()
  return { constant, drawn: chosen }
}

/** The sequences as far as this trial scores them: less of a small model, and never more than the context. */
const shortened = ({ maxContext, parameters }: SuiteSubject, sequences: Sequences): Sequences => {
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

/** The distance of the engine from the reference in each window of these sequences. */
const distancesOf = Effect.fnUntraced(function* (subject: SuiteSubject, all: Sequences) {
  const sequences = shortened(subject, all)
  const scored: Array<ReadonlyArray<number>> = []
  for (const { ids, logprobs } of sequences) {
    const values = yield* scoreOf(subject, ids)
    if (values === null) return yield* new NotApplicable({ reason: "no log-probabilities of prompts" })
    if (values.length !== logprobs.length) return yield* unexpected(`${values.length} log-probabilities for ${ids.length} tokens, expected ${logprobs.length}`)
    scored.push(values)
  }
  return windowDistances(
    scored,
    sequences.map(({ logprobs }) => logprobs)
  )
})

const figuresOf = ({ absolute, mean, worst }: WindowDistance): string => `mean ${mean.toFixed(4)}, absolute ${absolute.toFixed(4)}, one ${worst.toFixed(2)}`

/** Drawn sequences have their own distance: among the constant ones a fault of theirs would count less. */
const compare = Effect.fnUntraced(function* (subject: SuiteSubject, reference: ModelReference) {
  const sequences = sequencesOf(subject.seed, reference)
  const most = limitsOf(subject)
  const distances = yield* distancesOf(subject, sequences.constant)
  const constant = worstWindow(distances, most.constant)
  if (constant === undefined) return yield* new NotApplicable({ reason: "no_reference" })
  const drawn = worstWindow(yield* distancesOf(subject, sequences.drawn), most.drawn)
  const ofConstant = `${figuresOf(constant)} from Transformers ${reference.transformers} at ${constant.from} to ${constant.to - 1}, the worst of ${distances.length} windows`
  const figures = drawn === undefined ? ofConstant : `${ofConstant}; drawn ${figuresOf(drawn)}`
  const agrees = isWithin(constant, most.constant) && (drawn === undefined || isWithin(drawn, most.drawn))
  return agrees ? figures : yield* unexpected(figures)
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
