import { Effect, Option, Schema, type Scope } from "effect"
import { type PinnedTokenizer, readPinned } from "../suite/readPinned.ts"
import { seedOf } from "../suite/saltOf.ts"
import { drawnWords } from "../suite/texts/drawnTexts.ts"
import { likelihoodTexts } from "../suite/texts/likelihoodTexts.ts"
import { NoReference } from "./NoReference.ts"

/** The version of the texts of a reference. A change of a text, or of a number of tokens below, raises it. */
export const referenceVersion = 2

/** Tokens of each text, and of the texts that are joined to reach later positions. */
const textTokens = 256
const joinedTokens = 512
const promptTokens = 16
const prompts = 4
/**
 * Drawn sequences, and the tokens of each one. All of them are one pass of `reference.py`. A trial compares some of them,
 * so that an engine that has recorded other trials does not know all.
 */
const drawnSequences = 32
const drawnTokens = 64

/** Sequences to score and prompts to continue, as token IDs: the input of `reference.py`. */
export const ReferenceRequest = Schema.Struct({
  sequences: Schema.Array(Schema.Array(Schema.Int)),
  /** How many of the last sequences are drawn for the commit. */
  drawn: Schema.Int,
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

/** A commit, and its small files that a request is made of. */
interface RequestFiles {
  /** Determines the drawn sequences: every installation computes the same reference. */
  readonly commit: string
  readonly config: string
  /** `tokenizer.json`. */
  readonly tokenizer: Uint8Array
  /** `tokenizer_config.json`, or an empty object. */
  readonly tokenizerConfig: string
}

/** What a reference of this tokenizer's model consists of. `nativeContext`: the longest context of the model. */
const referenceRequest = (tokenizer: PinnedTokenizer, nativeContext: number, commit: string): Effect.Effect<ReferenceRequest> => {
  const texts = likelihoodTexts.map(({ text }) => text)
  const [prose = "", letters = "", report = ""] = texts
  const encode = (of: ReadonlyArray<string>, tokens: number) =>
    Effect.map(tokenizer.encode(of, true), (encoded) => encoded.map((ids) => ids.slice(0, Math.min(tokens, nativeContext))).filter((ids) => ids.length > 1))
  return Effect.gen(function* () {
    const constant = [...(yield* encode(texts, textTokens)), ...(yield* encode([[letters, report, prose].join("\n\n")], joinedTokens))]
    // A word has at least one token.
    const drawn = yield* encode(drawnWords(seedOf(commit, "reference"), drawnSequences, drawnTokens), drawnTokens)
    return {
      sequences: [...constant, ...drawn],
      drawn: drawn.length,
      prompts: constant.slice(0, prompts).map((ids) => ids.slice(0, promptTokens)),
      new_tokens: 2 * promptTokens
    }
  })
}

/** The request for the model with these files. Its tokenizer runs in a separate process. */
export const requestOf = Effect.fn("requestOf")(function* ({
  commit,
  config,
  tokenizer: file,
  tokenizerConfig
}: RequestFiles): Effect.fn.Return<ReferenceRequest, NoReference, Scope.Scope> {
  const { tokenizer } = yield* readPinned({ tokenizer: { file, config: tokenizerConfig }, template: null })
  if (tokenizer === null) return yield* new NoReference({ code: "no_tokenizer", message: "The tokenizer in tokenizer.json cannot be read." })
  return yield* referenceRequest(tokenizer, contextOf(config), commit)
})
