import { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../engineAnswers.ts"
import { unexpected } from "./Check.ts"
import type { Reading } from "./readAnswer.ts"
import type { Fields, SuiteSubject } from "./SuiteSubject.ts"
import { thresholds } from "./thresholds.ts"

/**
 * One prompt on one path: how to send it, and its known token ids. Returns null if the answer has a form that cannot be
 * read.
 */
export interface Asking {
  readonly ask: (fields: Fields) => Effect.Effect<Reading | null, EngineUnreachable | Unexpected>
  readonly prompt: ReadonlyArray<number> | null
}

/** The largest value of each penalty that both engines accept. */
const penalties = [
  ["presence_penalty", 2],
  ["frequency_penalty", 2],
  ["repetition_penalty", 2]
] as const

export type Pair = readonly [first: number, second: number]

/** Restricts the answer to two tokens. The first is preferred by twice `preferred`. */
export const oneOf = ({ ask }: Asking, [first, second]: Pair, preferred: number, fields: object = {}) => {
  const { mostPreferred } = thresholds
  const logit_bias = { [String(first)]: 100 - mostPreferred + preferred, [String(second)]: 100 - mostPreferred - preferred }
  return Effect.map(ask({ max_tokens: 6, ignore_eos: true, return_token_ids: true, logit_bias, ...fields }), (answer) => answer?.ids ?? null)
}

/**
 * Finds the least preference at which the answer is only the first token, while slightly less would let the second
 * token appear. At that point a penalty must change the answer, for any model. Null if there is no such
 * preference.
 */
export const tie = Effect.fnUntraced(function* (asking: Asking, pair: Pair) {
  /** How often the first token appears before the second; -1 if it appears alone. */
  const firstOther = (preferred: number) => Effect.map(oneOf(asking, pair, preferred), (ids) => ids?.findIndex((id) => id !== pair[0]) ?? null)
  let low: number = -thresholds.mostPreferred
  let high: number = thresholds.mostPreferred
  let before = yield* firstOther(low)
  if (before === null || before < 0 || (yield* firstOther(high)) !== -1) return null
  while (high - low > thresholds.preference) {
    const middle = (low + high) / 2
    const times = yield* firstOther(middle)
    if (times === -1) high = middle
    else [low, before] = [middle, times]
  }
  return before !== null && before > 0 ? high : null
})

/**
 * Tokens from the middle of the vocabulary with which no answer begins. Their likelihood is far from the likelihood of
 * the usual first tokens.
 */
export const rareOf = ({ vocabSize }: SuiteSubject, used: ReadonlyArray<number>, count: number): ReadonlyArray<number> => {
  const taken = new Set(used)
  const from = Math.floor(vocabSize / 2)
  return Array.from({ length: vocabSize - from }, (_, at) => from + at)
    .filter((id) => !taken.has(id))
    .slice(0, count)
}

/**
 * Penalties change the answer as they must. Returns the penalties that did. A repetition penalty multiplies, and some
 * engines add the bias after it, so that it changes nothing for a token whose own logit is near zero. Therefore rare
 * tokens are tried too before the check reports a penalty as ignored. `where`: the prefix of the path in the message.
 */
export const penaltiesObeyed = Effect.fnUntraced(function* (asking: Asking, pairs: ReadonlyArray<Pair>, offered: ReadonlySet<string>, where = "") {
  const confirmed = new Set<string>()
  const tried = new Set<string>()
  for (const pair of pairs) {
    const left = penalties.filter(([name]) => offered.has(name) && !confirmed.has(name))
    if (left.length === 0) break
    const preferred = yield* tie(asking, pair)
    if (preferred === null) continue
    for (const [name, value] of left) {
      // This penalty also applies to tokens of the prompt.
      if (name === "repetition_penalty" && asking.prompt?.includes(pair[1]) !== false) continue
      const ids = yield* oneOf(asking, pair, preferred, { [name]: value })
      if (ids === null) continue
      tried.add(name)
      if (ids.some((id) => id !== pair[0])) confirmed.add(name)
    }
  }
  const ignored = [...tried].filter((name) => !confirmed.has(name))
  return ignored.length > 0 ? yield* unexpected(`${where}${ignored.join(", ")} 2 changes nothing`) : [...confirmed]
})
