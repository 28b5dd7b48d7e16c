import { Effect } from "effect"
import type { EngineUnreachable, Unexpected } from "../EngineClient.ts"
import { unexpected } from "./Check.ts"
import type { Reading } from "./readAnswer.ts"
import type { Fields, SuiteSubject } from "./SuiteSubject.ts"
import { thresholds } from "./thresholds.ts"

/** One prompt on one path: what it is asked with, and the ids of it that are known. Gives null where the answer is in no form that can be read. */
export interface Asking {
  readonly ask: (fields: Fields) => Effect.Effect<Reading | null, EngineUnreachable | Unexpected>
  readonly prompt: ReadonlyArray<number> | null
}

/** The largest of each that both engines take. */
const penalties = [
  ["presence_penalty", 2],
  ["frequency_penalty", 2],
  ["repetition_penalty", 2]
] as const

export type Pair = readonly [first: number, second: number]

/** Of all tokens one of two, the first of which is preferred by twice so much. */
export const oneOf = ({ ask }: Asking, [first, second]: Pair, preferred: number, fields: object = {}) => {
  const { mostPreferred } = thresholds
  const logit_bias = { [String(first)]: 100 - mostPreferred + preferred, [String(second)]: 100 - mostPreferred - preferred }
  return Effect.map(ask({ max_tokens: 6, ignore_eos: true, return_token_ids: true, logit_bias, ...fields }), (answer) => answer?.ids ?? null)
}

/**
 * The least preference by which the first token alone is said, where with a little less the second would come after it at some step: there a penalty for what was said
 * has to change something, whatever the model. Null where there is none.
 */
export const tie = Effect.fnUntraced(function* (asking: Asking, pair: Pair) {
  /** How often the first is said before the second is; -1 where it alone is. */
  const said = (preferred: number) => Effect.map(oneOf(asking, pair, preferred), (ids) => ids?.findIndex((id) => id !== pair[0]) ?? null)
  let low: number = -thresholds.mostPreferred
  let high: number = thresholds.mostPreferred
  let before = yield* said(low)
  if (before === null || before < 0 || (yield* said(high)) !== -1) return null
  while (high - low > thresholds.preference) {
    const middle = (low + high) / 2
    const times = yield* said(middle)
    if (times === -1) high = middle
    else [low, before] = [middle, times]
  }
  return before !== null && before > 0 ? high : null
})

/** Some tokens from the middle of the vocabulary that no answer begins with: how likely they are is far from how likely those are that come first. */
export const rareOf = ({ vocabSize }: SuiteSubject, used: ReadonlyArray<number>, count: number): ReadonlyArray<number> => {
  const taken = new Set(used)
  const from = Math.floor(vocabSize / 2)
  return Array.from({ length: vocabSize - from }, (_, at) => from + at)
    .filter((id) => !taken.has(id))
    .slice(0, count)
}

/**
 * Penalties change what they have to. Gives those that were seen to. A repetition penalty multiplies, and some engines add a bias after it: of a token whose own logit is
 * next to zero it changes nothing, so that rare ones are asked for too before it is said to be ignored. `where`: how a fault is told of that path.
 */
export const penaltiesObeyed = Effect.fnUntraced(function* (asking: Asking, pairs: ReadonlyArray<Pair>, offered: ReadonlySet<string>, where = "") {
  const seen = new Set<string>()
  const asked = new Set<string>()
  for (const pair of pairs) {
    const left = penalties.filter(([name]) => offered.has(name) && !seen.has(name))
    if (left.length === 0) break
    const preferred = yield* tie(asking, pair)
    if (preferred === null) continue
    for (const [name, value] of left) {
      // This one is for what stands in the prompt too.
      if (name === "repetition_penalty" && asking.prompt?.includes(pair[1]) !== false) continue
      const ids = yield* oneOf(asking, pair, preferred, { [name]: value })
      if (ids === null) continue
      asked.add(name)
      if (ids.some((id) => id !== pair[0])) seen.add(name)
    }
  }
  const ignored = [...asked].filter((name) => !seen.has(name))
  return ignored.length > 0 ? yield* unexpected(`${where}${ignored.join(", ")} 2 changes nothing`) : [...seen]
})
