import { Effect } from "effect"
import type { PinnedTokenizer } from "../suite/readPinned.ts"
import { likelihoodTexts } from "../suite/texts/likelihoodTexts.ts"

/** The version of the texts of a reference. A change of a text, or of a number of tokens below, raises it. */
export const referenceVersion = 1

/** Tokens of each text, and of the texts that are joined to reach later positions. */
const textTokens = 256
const joinedTokens = 512
const promptTokens = 16
const prompts = 4

/** Sequences to score and prompts to continue, as token IDs: the input of `reference.py`. */
export interface ReferenceRequest {
  readonly sequences: ReadonlyArray<ReadonlyArray<number>>
  readonly prompts: ReadonlyArray<ReadonlyArray<number>>
  readonly new_tokens: number
}

/** What a reference of this tokenizer's model consists of. `nativeContext`: the longest context of the model. */
export const referenceRequest = (tokenizer: PinnedTokenizer, nativeContext: number): Effect.Effect<ReferenceRequest> => {
  const texts = likelihoodTexts.map(({ text }) => text)
  const [prose = "", letters = "", report = ""] = texts
  return Effect.map(tokenizer.encode([...texts, [letters, report, prose].join("\n\n")], true), (encoded) => {
    const sequences = encoded.map((ids, index) => ids.slice(0, Math.min(index < texts.length ? textTokens : joinedTokens, nativeContext)))
    const scored = sequences.filter((ids) => ids.length > 1)
    return { sequences: scored, prompts: scored.slice(0, prompts).map((ids) => ids.slice(0, promptTokens)), new_tokens: 2 * promptTokens }
  })
}
