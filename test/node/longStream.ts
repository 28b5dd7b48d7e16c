import { Effect } from "effect"
import type { Answer } from "../e2e/Caller.ts"
import { requestIdOf } from "../e2e/chat.ts"
import { slowDown } from "./containerFaults.ts"
import { placeOfEngine } from "./movePods.ts"
import type { ServedReleaseShape } from "./ServedRelease.ts"

/** The tokens that end an answer of the sample model. Without them an answer is as long as its limit. */
const endTokens = { "504": -100, "505": -100 }

/** Tokens of a long stream. */
export const longStreamTokens = 300

const body = (model: string) => ({
  model,
  stream: true,
  stream_options: { include_usage: true },
  max_tokens: longStreamTokens,
  temperature: 0,
  logit_bias: endTokens,
  messages: [{ role: "user", content: "What does a sea trial show?" }]
})

export interface LongStream {
  /** The ID of the request record. */
  readonly id: string
  /** Reads the stream to its end. Fails if it is cut. */
  readonly rest: Effect.Effect<Answer, "cut">
}

/** Starts a stream at a gateway, and returns when its first bytes have arrived. */
const openStream = (address: string, { key, model }: Pick<ServedReleaseShape, "key" | "model">): Effect.Effect<LongStream> =>
  Effect.promise(async () => {
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body(model))
    })
    const { headers, status } = response
    if (status !== 200 || response.body === null) throw new Error(`the stream was refused with ${status}: ${await response.text()}`)
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    const first = await reader.read()
    const readRest = async () => {
      let text = first.value ?? ""
      for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
      return { status, headers, text }
    }
    return { id: requestIdOf({ status, headers, text: "" }), rest: Effect.tryPromise({ try: readRest, catch: () => "cut" as const }) }
  })

/** Starts a stream that takes seconds, because its engine is slow until the scope closes. */
export const openLongStream = Effect.fnUntraced(function* (release: ServedReleaseShape, address: string) {
  const { engine } = yield* placeOfEngine(release)
  yield* slowDown(engine, "engine")
  return yield* openStream(address, release)
})
