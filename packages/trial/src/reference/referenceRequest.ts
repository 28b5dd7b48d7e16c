import { Effect, Option, Schema, type Scope } from "effect"
import { type PinnedTokenizer, readPinned } from "../suite/readPinned.ts"
import { likelihoodTexts } from "../suite/texts/likelihoodTexts.ts"
import { NoReference } from "./NoReference.ts"

/** The version of the texts of a reference. A change of a text, or of a number of tokens below, raises it. */
export const referenceVersion = 1

/** Tokens of each text, and of the texts that are joined to reach later positions. */
const textTokens = 256
const joinedTokens = 512
const promptTokens = 16
const prompts = 4

/** Sequences to score and prompts to continue, as token IDs: the input of `reference.py`. */
export const ReferenceRequest = Schema.Struct({
  sequences: Schema.Array(Schema.Array(Schema.Int)),
  prompts: Schema.Array(Schema.Array(Schema.Int)),
  new_tokens: Schema.Int
})
export type ReferenceRequest = typeof ReferenceRequest.Type

const Positions = Schema.Struct({ max_position_embeddings: Schema.optionalKey(Schema.Int) })
const decodeConfig = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ ...Positions.fields, text_config: Schema.optionalKey(Positions) })))

/** The longest context of the model; infinite if the configuration does not have it. */
const contextOf = (config: string): number => {
  const fields = Option.getOrUndefined(decodeConfig(config))
  return fields?.max_position_embeddings ?? fields?.text_config?.max_position_embeddings ?? Number.POSITIVE_INFINITY
}

/** The small files of a commit that a request is made of. */
interface RequestFiles {
  readonly config: string
  /** `tokenizer.json`. */
  readonly tokenizer: Uint8Array
  /** `tokenizer_config.json`, or an empty object. */
  readonly tokenizerConfig: string
}

/** What a reference of this tokenizer's model consists of. `nativeContext`: the longest context of the model. */
const referenceRequest = (tokenizer: PinnedTokenizer, nativeContext: number): Effect.Effect<ReferenceRequest> => {
  const texts = likelihoodTexts.map(({ text }) => text)
  const [prose = "", letters = "", report = ""] = texts
  return Effect.map(tokenizer.encode([...texts, [letters, report, prose].join("\n\n")], true), (encoded) => {
    const sequences = encoded.map((ids, index) => ids.slice(0, Math.min(index < texts.length ? textTokens : joinedTokens, nativeContext)))
    const scored = sequences.filter((ids) => ids.length > 1)
    return { sequences: scored, prompts: scored.slice(0, prompts).map((ids) => ids.slice(0, promptTokens)), new_tokens: 2 * promptTokens }
  })
}

/** The request for the model with these files. Its tokenizer runs in a separate process. */
export const requestOf = Effect.fn("requestOf")(function* ({
  config,
  tokenizer: file,
  tokenizerConfig
}: RequestFiles): Effect.fn.Return<ReferenceRequest, NoReference, Scope.Scope> {
  const { tokenizer } = yield* readPinned({ tokenizer: { file, config: tokenizerConfig }, template: null })
  if (tokenizer === null) return yield* new NoReference({ code: "no_tokenizer", message: "The tokenizer in tokenizer.json cannot be read." })
  return yield* referenceRequest(tokenizer, contextOf(config))
})
