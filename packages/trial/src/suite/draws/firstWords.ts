import { thresholds } from "../thresholds.ts"

/** A token that may come first, as the engine lists it. `text`: without surrounding blanks. */
export interface ListedToken {
  readonly text: string
  readonly logprob: number
}

/** A word that may come first, and the log-probabilities of all tokens with this text. */
export interface FirstWord {
  readonly text: string
  readonly logprobs: ReadonlyArray<number>
}

/** A test of one setting: the drawn words that are counted, and the likeliest of them, which are counted together. */
export interface Split {
  readonly field: string
  readonly fields: { readonly temperature: number; readonly top_p: number; readonly top_k: number }
  readonly counted: ReadonlySet<string>
  readonly likely: ReadonlySet<string>
  /** The share of the likely words among the counted ones. */
  readonly chance: number
  /** Whether the setting makes all other words impossible. */
  readonly isClosed: boolean
  /** Fisher information of one draw about the logarithm of the temperature. */
  readonly information: number
}

/** Letters only: the same text on each path, and never a mark. */
export const isWord = (text: string): boolean => /^\p{L}+$/u.test(text)

const sum = (values: ReadonlyArray<number>) => values.reduce((total, value) => total + value, 0)
const leastShare = 0.02
const off = { temperature: 1, top_p: 1, top_k: -1 }

/** Adds the tokens with the same text. */
export const wordsAmong = (listed: ReadonlyArray<ListedToken>): ReadonlyArray<FirstWord> =>
  [...Map.groupBy(listed, ({ text }) => text)].flatMap(([text, tokens]) => (isWord(text) ? [{ text, logprobs: tokens.map(({ logprob }) => logprob) }] : []))

/**
 * Divides the words, likeliest first, at the place with the most information. Null if there are fewer than two words.
 */
export const splitOf = (field: string, words: ReadonlyArray<FirstWord>, fields: Split["fields"], isClosed: boolean): Split | null => {
  const { temperature } = fields
  const highest = Math.max(...words.flatMap(({ logprobs }) => logprobs))
  const weighed = words
    .map(({ logprobs, text }) => {
      const weights = logprobs.map((logprob) => Math.exp((logprob - highest) / temperature))
      return { text, weight: sum(weights), slope: sum(weights.map((weight, at) => (weight * ((logprobs[at] ?? 0) - highest)) / temperature)) }
    })
    .toSorted((a, b) => b.weight - a.weight)
  const total = sum(weighed.map(({ weight }) => weight))
  const slopes = sum(weighed.map(({ slope }) => slope))
  const splits = weighed.slice(1).map((_, before): Split => {
    const likely = weighed.slice(0, before + 1)
    const chance = sum(likely.map(({ weight }) => weight)) / total
    const change = sum(likely.map(({ slope }) => slope)) / total - (chance * slopes) / total
    return {
      field,
      fields,
      counted: new Set(words.map(({ text }) => text)),
      likely: new Set(likely.map(({ text }) => text)),
      chance,
      isClosed,
      // A share near 0 or 1 is lost to rounding.
      information: Math.min(chance, 1 - chance) < leastShare ? 0 : change ** 2 / (chance * (1 - chance))
    }
  })
  return splits.reduce<Split | null>((best, split) => (best === null || split.information > best.information ? split : best), null)
}

/** A temperature below 1 would enlarge the differences that rounding makes. */
const temperatures = [1.2, 1.4, 1.7]

/** The split with the most information, at any of the temperatures. Draws of unknown words have no information. */
export const temperatureSplit = (words: ReadonlyArray<FirstWord>, listed: ReadonlyArray<ListedToken>): Split | null => {
  const visible = (temperature: number) => {
    const weight = (logprob: number) => Math.exp(logprob / temperature)
    const rest = Math.max(0, 1 - sum(listed.map(({ logprob }) => Math.exp(logprob))))
    const least = Math.min(0, ...listed.map(({ logprob }) => logprob))
    // Tokens that are not listed count as if each was as likely as the last listed one.
    const unlisted = (rest / Math.exp(least)) * weight(least)
    const known = sum(words.flatMap(({ logprobs }) => logprobs).map(weight))
    return known / (sum(listed.map(({ logprob }) => weight(logprob))) + unlisted)
  }
  const splits = temperatures.flatMap((temperature) => {
    const split = splitOf("temperature", words, { ...off, temperature }, false)
    return split === null ? [] : [{ ...split, information: split.information * visible(temperature) }]
  })
  return splits.reduce<Split | null>((best, split) => (best === null || split.information > best.information ? split : best), null)
}

/** Number of tokens that a cut may leave. */
const [fewestLeft, mostLeft] = [2, 8]

/**
 * Cuts that leave some of the listed tokens, which are sorted by their likelihood: between two tokens that no rounding
 * swaps. Of the possible ones that which removes most words.
 */
export const cutSplits = (listed: ReadonlyArray<ListedToken>): ReadonlyArray<Split> => {
  const cuts = Array.from({ length: mostLeft - fewestLeft + 1 }, (_, more) => fewestLeft + more).flatMap((left) => {
    const [remaining, last, next] = [listed.slice(0, left), listed[left - 1], listed[left]]
    if (last === undefined || next === undefined || last.logprob - next.logprob < thresholds.sureBy) return []
    const texts = new Set(remaining.map(({ text }) => text))
    const removed = sum(listed.slice(left).flatMap(({ logprob, text }) => (isWord(text) && !texts.has(text) ? [Math.exp(logprob)] : [])))
    const share = Math.exp(last.logprob)
    const top_p = sum(remaining.map(({ logprob }) => Math.exp(logprob))) - share / 2
    return removed < thresholds.leastRemoved ? [] : [{ left, removed, share, top_p, words: wordsAmong(remaining) }]
  })
  const most = cuts.toSorted((a, b) => b.removed - a.removed)
  const [byCount, byShare] = [most[0], most.find(({ share }) => share >= thresholds.leastLastShare)]
  return [
    ...(byCount === undefined ? [] : [splitOf("top_k", byCount.words, { ...off, top_k: byCount.left }, true)]),
    ...(byShare === undefined ? [] : [splitOf("top_p", byShare.words, { ...off, top_p: byShare.top_p }, true)])
  ].flatMap((split) => (split === null ? [] : [split]))
}
