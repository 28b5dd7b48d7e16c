import { Effect, Option, Schema } from "effect"
import type { EngineClient } from "./EngineClient.ts"
import { type PromptSample, promptOf } from "./PromptSample.ts"
import { RequestAbort } from "./RequestAbort.ts"
import { readWhole } from "./readWhole.ts"

export interface CountedPrompt {
  readonly tokens: number
  /**
   * Whether the model's tokenizer counted the text or a sample of it. If not, the count is estimated from the length.
   */
  readonly byTokenizer: boolean
}

export interface CountOptions {
  /** The engine's address. */
  readonly url: string
  readonly requestId: string
  readonly sample: PromptSample
  /** Upper bound of the prompt's tokens. */
  readonly most: number
}

/** Time limit of the tokenizer, in milliseconds. */
const patience = 2_000
/** Largest answer of the tokenizer, which lists the tokens, in bytes. */
const largest = 4 * 1024 * 1024
/** Bytes of text per token if no tokenizer answers. English has about four, so this rarely underestimates. */
const bytesPerToken = 3
/** Tokens of an image of about a million pixels with patches of 32 by 32. */
const tokensPerImage = 1_024

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ count: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)) })))

/** Counts the tokens of a prompt with the tokenizer of the engine that has the request. Tokenizing uses no GPU. */
export const countPrompt = Effect.fnUntraced(function* (engine: EngineClient["Service"], { most, requestId, sample, url }: CountOptions) {
  const { templateTokens, text } = promptOf(sample)
  const signal = new RequestAbort()
  const body = () => JSON.stringify({ prompt: text, add_special_tokens: true })
  const counted =
    text === ""
      ? 0
      : yield* engine.call({ url, path: "/tokenize", method: "POST", body, requestId, timeout: patience, signal }).pipe(
          Effect.flatMap((answer) =>
            Effect.map(readWhole(answer, largest, patience, signal), (bytes) =>
              answer.statusCode === 200 && typeof bytes !== "string" ? Option.getOrNull(decode(bytes.toString("utf8"))) : null
            )
          ),
          Effect.map((answer) => answer?.count ?? null),
          Effect.orElseSucceed(() => null)
        )
  const ofText = Math.ceil((counted ?? Buffer.byteLength(text) / bytesPerToken) * sample.scale)
  const tokens = Math.min(most, sample.tokens + templateTokens + sample.images * tokensPerImage + ofText)
  return { tokens, byTokenizer: counted !== null } satisfies CountedPrompt
})
