import type { InferencePath } from "@seatrial/domain"
import { Option, Schema } from "effect"
import { contextLengthExceeded, engineFailed, invalidParameter, modelOverloaded, type Refusal } from "./refusals.ts"

const Told = { message: Schema.String, code: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.Finite, Schema.String]))) }
// vLLM nests its errors, SGLang's chat does not.
const EngineError = Schema.fromJsonString(Schema.Union([Schema.Struct({ error: Schema.Struct(Told) }), Schema.Struct(Told)]))
const decode = Schema.decodeUnknownOption(EngineError)

/** Our own words for an engine's error: its own may echo the prompt. `status` is the answer's, where it is not 200; else the error's own code counts. */
export const readEngineError = (body: string, status: number, at: { readonly endpoint: InferencePath; readonly maxModelLen: number }): Refusal => {
  const told = Option.getOrNull(Option.map(decode(body), (error) => ("error" in error ? error.error : error)))
  const code = status === 200 ? Number(told?.code ?? 500) : status
  if (code === 503 || code === 429) return modelOverloaded
  // Where the engine knows no such model or does not take our key, the fault is not the caller's.
  if (code !== 400 && code !== 413 && code !== 422) return engineFailed
  return /context length|max_model_len|too long/i.test(told?.message ?? "")
    ? contextLengthExceeded(
        `This model's maximum context length is ${at.maxModelLen} tokens. Shorten the input or lower max_tokens.`,
        at.endpoint === "/v1/completions" ? "prompt" : "messages"
      )
    : invalidParameter("The engine cannot serve the request with these parameters.")
}
