import { Effect } from "effect"
import type { SuiteSubject } from "../SuiteSubject.ts"
import { type KnownDraws, type KnownToken, logprobsAfter } from "./knownTokens.ts"

/**
 * Two tokens between which a penalty decides: the first one comes first, and the bias makes it likelier by `ahead` nats
 * than the other one as the second token too.
 */
export interface TokenPair {
  readonly first: KnownToken
  readonly other: KnownToken
  /** The increase of the first token's logit. */
  readonly bias: number
}

/** The penalties that subtract from the logits of drawn tokens, at the largest value that engines accept. */
export const subtracted = ["presence_penalty", "frequency_penalty"] as const
export const penalty = 2
/** Half of the penalty, so that the second token is as uncertain with it as without. */
export const ahead = 1

/** The chance that the first token is drawn again, after it was drawn once. */
export const repeatedChance = (subtracts: number): number => 1 / (1 + Math.exp(subtracts - ahead))

const chanceOf = (difference: number): number => 1 / (1 + Math.exp(-difference))

/**
 * Two tokens, and their difference in nats without a bias: in the first step, after the first token, and after two first
 * tokens.
 */
interface Steps {
  readonly first: KnownToken
  readonly other: KnownToken
  readonly differences: readonly [first: number, second: number, third: number]
}

/** Draws that begin with the first token of a pair, once or twice. The next token is counted. */
export interface Sequence {
  readonly name: string
  readonly first: KnownToken
  readonly other: KnownToken
  readonly bias: number
  readonly fields: Readonly<Record<string, number>>
  /** Number of first tokens before the counted token. */
  readonly before: 1 | 2
  /** The chance that it comes again. */
  readonly chance: number
}

/** The pair with the least change between these two steps. */
const alike = (all: ReadonlyArray<Steps>, [one, other]: readonly [0 | 1 | 2, 0 | 1 | 2]) => {
  const distance = ({ differences }: Steps) => Math.abs(differences[one] - differences[other])
  return all.toSorted((a, b) => distance(a) - distance(b)).find((each) => distance(each) < mostApart)
}

/** The largest change, in nats: both tokens must be drawn in both steps. */
const mostApart = 2

const stepsOf = Effect.fnUntraced(function* (subject: SuiteSubject, { prompt, tokens }: KnownDraws) {
  const [first, ...others] = tokens.toSorted((a, b) => b.logprob - a.logprob)
  if (first === undefined) return []
  const candidates = [first, ...others.slice(0, 2 * tried)]
  const ids = candidates.map(({ id }) => id)
  const once = yield* logprobsAfter(subject, [...prompt, first.id], ids)
  const twice = yield* logprobsAfter(subject, [...prompt, first.id, first.id], ids)
  return candidates.slice(1).flatMap((other): ReadonlyArray<Steps> => {
    const after = (known: ReadonlyMap<number, number>) => (known.get(first.id) ?? Number.NaN) - (known.get(other.id) ?? Number.NaN)
    const differences = [first.logprob - other.logprob, after(once), after(twice)] as const
    return differences.some(Number.isNaN) ? [] : [{ first, other, differences }]
  })
})

/**
 * Draws of several tokens. Each token needs a new random number: with an old one, the first token repeats too often. A
 * frequency penalty counts all draws of a token.
 */
export const sequencesOf = Effect.fnUntraced(function* (subject: SuiteSubject, known: KnownDraws, offered: ReadonlySet<string>) {
  const all = yield* stepsOf(subject, known)
  const sequences: Array<Sequence> = []
  const even = alike(all, [0, 1])
  if (even !== undefined) {
    const [first, second] = even.differences
    const bias = -(first + second) / 2
    sequences.push({ ...even, name: "random_numbers", bias, fields: {}, before: 1, chance: chanceOf(second + bias) })
  }
  const counted = offered.has("frequency_penalty") && subject.offers.latePenalties !== true ? alike(all, [1, 2]) : undefined
  if (counted !== undefined) {
    const [, second, third] = counted.differences
    const bias = 1.5 * penalty - (second + third) / 2
    const chance = chanceOf(third + bias - 2 * penalty)
    sequences.push({ ...counted, name: "frequency_penalty_twice", bias, fields: { frequency_penalty: penalty }, before: 2, chance })
  }
  return sequences
})

/** The chance that the first token comes first. */
const comesFirst = ({ bias, first, other }: TokenPair): number => 1 / (1 + Math.exp(other.logprob - first.logprob - bias))

/** Tokens that are tried as the other one of a pair. */
const tried = 4

/** The pair whose first token comes first most often; null if it comes too rarely. */
export const pairOf = Effect.fnUntraced(function* (subject: SuiteSubject, { prompt, tokens }: KnownDraws) {
  const [first, ...others] = tokens.toSorted((a, b) => b.logprob - a.logprob)
  if (first === undefined) return null
  const after = yield* logprobsAfter(
    subject,
    [...prompt, first.id],
    [first, ...others.slice(0, tried)].map(({ id }) => id)
  )
  const again = after.get(first.id)
  const pairs = others.slice(0, tried).flatMap((other): ReadonlyArray<TokenPair> => {
    const logprob = after.get(other.id)
    return again === undefined || logprob === undefined ? [] : [{ first, other, bias: ahead - (again - logprob) }]
  })
  const [best] = pairs.toSorted((a, b) => comesFirst(b) - comesFirst(a))
  return best === undefined || comesFirst(best) < 0.5 ? null : best
})
