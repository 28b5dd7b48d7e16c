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
