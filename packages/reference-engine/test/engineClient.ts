import { dataFrame, streamEnd, streamEvents } from "@seatrial/domain"
import { Schema } from "effect"
import type { Fault } from "../src/Seams.ts"
import { serveEngine } from "./serveEngine.ts"

const Usage = Schema.Struct({ prompt_tokens: Schema.Int, completion_tokens: Schema.Int, total_tokens: Schema.Int })
const Described = Schema.Struct({ token: Schema.String, logprob: Schema.Finite, bytes: Schema.Array(Schema.Int) })
const Logprobs = Schema.Struct({ content: Schema.Array(Schema.Struct({ ...Described.fields, top_logprobs: Schema.Array(Described) })) })
const shared = { finish_reason: Schema.NullOr(Schema.String), token_ids: Schema.optionalKey(Schema.Array(Schema.Int)) }

const Chat = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  model: Schema.String,
  choices: Schema.Tuple([
    Schema.Struct({ ...shared, message: Schema.Struct({ role: Schema.Literal("assistant"), content: Schema.String }), logprobs: Schema.NullOr(Logprobs) })
  ]),
  usage: Usage
})
export const Text = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("text_completion"),
  choices: Schema.Tuple([Schema.Struct({ ...shared, text: Schema.String, stop_reason: Schema.NullOr(Schema.Union([Schema.String, Schema.Int])) })]),
  usage: Usage,
  prompt_logprobs: Schema.optionalKey(
    Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Schema.Struct({ logprob: Schema.Finite, decoded_token: Schema.String }))))
  )
})
const Refusal = Schema.Struct({
  error: Schema.Struct({ message: Schema.String, type: Schema.String, param: Schema.NullOr(Schema.String), code: Schema.Int })
})
export const Tokens = Schema.Struct({ count: Schema.Int, max_model_len: Schema.Int, tokens: Schema.Array(Schema.Int) })
export const Prompt = Schema.Struct({ prompt: Schema.String })
const Chunk = Schema.Struct({
  id: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      ...shared,
      delta: Schema.optionalKey(Schema.Struct({ role: Schema.optionalKey(Schema.String), content: Schema.optionalKey(Schema.String) })),
      text: Schema.optionalKey(Schema.String)
    })
  ),
  usage: Schema.optionalKey(Usage)
})
export type Chunk = typeof Chunk.Type

/** Sampling parameters that select the likeliest token, whatever the repository's defaults are. */
export const greedy = { temperature: 0, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, presence_penalty: 0, frequency_penalty: 0, seed: 0 }

/** Sends requests to an engine and decodes the answers. */
export class EngineClient {
  readonly address: string

  constructor(address: string) {
    this.address = address
  }

  send(path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.address}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), ...init })
  }

  async ask<S extends Schema.ConstraintDecoder<unknown>>(schema: S, path: string, body: unknown): Promise<S["Type"]> {
    const response = await this.send(path, body)
    return Schema.decodeUnknownSync(schema)(await response.json())
  }

  chat(content: string, settings: object = {}) {
    return this.ask(Chat, "/v1/chat/completions", { messages: [{ role: "user", content }], ...greedy, ...settings })
  }

  text(prompt: string | ReadonlyArray<number>, settings: object = {}) {
    return this.ask(Text, "/v1/completions", { prompt, ...greedy, ...settings })
  }

  /** The status and error of a refused request. */
  async refusal(path: string, body: unknown) {
    const response = await this.send(path, body)
    return { status: response.status, ...Schema.decodeUnknownSync(Refusal)(await response.json()).error }
  }

  /** The chunks of a stream. Throws if it does not end with `[DONE]`. */
  async stream(path: string, body: object): Promise<ReadonlyArray<Chunk>> {
    const response = await this.send(path, { ...greedy, ...body, stream: true })
    const text = await response.text()
    if (!text.endsWith(dataFrame(streamEnd))) throw new Error("the stream does not end with [DONE]")
    return streamEvents(text).map((data) => Schema.decodeUnknownSync(Schema.fromJsonString(Chunk))(data))
  }

  async metric(name: string): Promise<number> {
    const text = await (await fetch(`${this.address}/metrics`)).text()
    const line = text.split("\n").find((one) => one.startsWith(name.includes("{") ? `${name} ` : `${name}{`))
    return line === undefined ? Number.NaN : Number(line.slice(line.lastIndexOf(" ") + 1))
  }

  /** Polls until a metric has the wanted value. The timeout of the test limits the wait. */
  async until(name: string, wanted: (value: number) => boolean): Promise<void> {
    while (!wanted(await this.metric(name))) await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** Boots an engine in this process and serves it on a free port. */
export const serve = (model: string, ...words: ReadonlyArray<string>) => serveWithFault(null, model, ...words)

/** The same with an injected fault. */
export const serveWithFault = async (fault: Fault | null, model: string, ...words: ReadonlyArray<string>) => {
  const memory = words.some((word) => word.startsWith("--gpu-memory-bytes=")) ? [] : ["--gpu-memory-bytes=67108864"]
  const { url, ...served } = await serveEngine([`--model=${model}`, "--served-model-name=tiny", ...memory, ...words], fault)
  return { ...served, client: new EngineClient(url) }
}
