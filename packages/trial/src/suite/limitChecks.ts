import { Effect, Option, Schema } from "effect"
import { Unexpected } from "../EngineClient.ts"
import { ask, greedy, type Subject, textPath, tokenIds } from "../Subject.ts"
import type { TrialCheck } from "./Check.ts"

const unexpected = (detail: string) => Effect.fail(new Unexpected({ detail }))

/** vLLM nests its errors, SGLang's are flat. */
const Told = Schema.Union([Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }), Schema.Struct({ message: Schema.String })])
const decodeTold = Schema.decodeUnknownOption(Schema.fromJsonString(Told))

const malformed = ({ servedName, takesAnyName }: Subject): ReadonlyArray<readonly [name: string, path: string, body: string]> => {
  const chat = "/v1/chat/completions"
  const messages = [{ role: "user", content: "Hello" }]
  const json = (body: object) => JSON.stringify({ model: servedName, ...body })
  return [
    ["json", chat, '{"messages":'],
    ["no_messages", chat, json({})],
    ["messages_type", chat, json({ messages: "Hello" })],
    ["temperature_type", chat, json({ messages, temperature: "hot" })],
    ["negative_limit", chat, json({ messages, max_tokens: -1 })],
    ...(takesAnyName === true ? [] : [["other_model", textPath, JSON.stringify({ model: `${servedName}-other`, prompt: "Hello", max_tokens: 1 })] as const]),
    ["empty_prompt", textPath, json({ prompt: [], max_tokens: 1 })],
    ["top_p", textPath, json({ prompt: "Hello", max_tokens: 1, top_p: 7 })]
  ]
}

/** Malformed requests are refused, each with an error, and none harms the next. */
export const badRequests: TrialCheck = {
  name: "bad_requests",
  run: Effect.fnUntraced(function* (subject) {
    const cases = malformed(subject)
    for (const [name, path, body] of cases) {
      const { status, text } = yield* Effect.catchTag(subject.client.post(path, body), "EngineUnreachable", () =>
        unexpected(`${name}: the engine did not answer`)
      )
      if (status !== 400 && status !== 404 && status !== 422) return yield* unexpected(`${name}: HTTP ${status}`)
      if (Option.isNone(decodeTold(text))) return yield* unexpected(`${name}: HTTP ${status} without an error body`)
      yield* Effect.catchTag(ask(subject, "Hello", { max_tokens: 1 }), "EngineUnreachable", () => unexpected(`${name}: the engine did not survive it`))
    }
    return `${cases.length} refused`
  })
}

/** The longest context is exactly what was promised: a request that fills it is answered, one token more is refused and not cut. */
export const contextEdge: TrialCheck = {
  name: "context_edge",
  skipped: ({ maxContext }) => maxContext < 64,
  run: Effect.fnUntraced(function* (subject) {
    const { client, maxContext, servedName } = subject
    const body = (length: number, max_tokens: number) => ({ model: servedName, prompt: tokenIds(subject, length, 7), ...greedy, max_tokens, ignore_eos: true })
    const { usage } = yield* client.ask(textPath, body(maxContext - 8, 8))
    if (usage.prompt_tokens !== maxContext - 8 || usage.completion_tokens !== 8) {
      return yield* unexpected(`${usage.prompt_tokens} + ${usage.completion_tokens} tokens, asked for ${maxContext - 8} + 8`)
    }
    for (const [name, length, limit] of [
      ["one_more", maxContext - 8, 9],
      ["full_prompt", maxContext, 1]
    ] as const) {
      const { status } = yield* client.post(textPath, JSON.stringify(body(length, limit)))
      if (status !== 400) return yield* unexpected(`${name}: HTTP ${status}, not 400`)
    }
    yield* ask(subject, "Hello", { max_tokens: 1 })
    return `${maxContext} tokens`
  })
}
