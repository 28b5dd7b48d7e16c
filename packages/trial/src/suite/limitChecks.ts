import { CompletionCounts } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { promptTokens } from "../promptTokens.ts"
import { greedy, textPath } from "../Subject.ts"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import { chatPath, put, type SuiteSubject } from "./SuiteSubject.ts"
import { seedOf } from "./saltOf.ts"

/** vLLM nests its errors, SGLang's are flat. */
const ErrorBody = Schema.Union([Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }), Schema.Struct({ message: Schema.String })])
const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(ErrorBody))

const decodeUsage = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ usage: CompletionCounts })))

/** `refused`: the engine must refuse it. Otherwise the engine may answer it, but it must break nothing. */
interface Malformed {
  readonly name: string
  readonly path: string
  readonly body: string
  readonly refused: boolean
}

const malformed = ({ servedName, takesAnyName }: SuiteSubject): ReadonlyArray<Malformed> => {
  const messages = [{ role: "user", content: "Hello" }]
  const json = (body: object) => JSON.stringify({ model: servedName, ...body })
  const refused = (name: string, path: string, body: string): Malformed => ({ name, path, body, refused: true })
  const survived = (name: string, body: object): Malformed => ({ name, path: chatPath, body: json({ messages, max_tokens: 2, ...body }), refused: false })
  const tool = { type: "function", function: { name: "f", parameters: { type: "object", properties: { a: { type: "string", pattern: "((((((" } } } } }
  return [
    refused("json", chatPath, '{"messages":'),
    refused("no_messages", chatPath, json({})),
    refused("messages_type", chatPath, json({ messages: "Hello" })),
    refused("temperature_type", chatPath, json({ messages, temperature: "hot" })),
    refused("negative_limit", chatPath, json({ messages, max_tokens: -1 })),
    ...(takesAnyName === true ? [] : [refused("other_model", textPath, JSON.stringify({ model: `${servedName}-other`, prompt: "Hello", max_tokens: 1 }))]),
    refused("empty_prompt", textPath, json({ prompt: [], max_tokens: 1 })),
    refused("top_p", textPath, json({ prompt: "Hello", max_tokens: 1, top_p: 7 })),
    refused("ids_type", textPath, json({ prompt: [1, "two", 3], max_tokens: 1 })),
    survived("negative_count", { n: -1 }),
    survived("regex", { structured_outputs: { regex: "((((((" } }),
    survived("schema", { response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "strange" } } } }),
    survived("tools_type", { tools: "none" }),
    survived("tool_pattern", { tools: [tool], tool_choice: { type: "function", function: { name: "f" } } })
  ]
}

const refusalStatuses: ReadonlySet<number> = new Set([400, 404, 422])
/** Engines may accept a body and ignore the malformed optional field. */
const acceptedStatuses: ReadonlySet<number> = new Set([200, 501])

/** Whether the engine refuses the request, with an error body. Fails if it neither refuses nor may accept it. */
const isRefused = Effect.fnUntraced(function* (subject: SuiteSubject, { body, name, path, refused }: Malformed) {
  const { status, text } = yield* Effect.catchTag(subject.client.post(path, body), "EngineUnreachable", () => unexpected(`${name}: the engine did not answer`))
  if (!refusalStatuses.has(status)) return refused || !acceptedStatuses.has(status) ? yield* unexpected(`${name}: HTTP ${status}`, { status }) : false
  return Option.isNone(decodeError(text)) ? yield* unexpected(`${name}: HTTP ${status} without an error body`, { status }) : true
})

/** The engine still generates after the request. */
const survives = Effect.fnUntraced(function* (subject: SuiteSubject, { name }: Malformed) {
  const next = yield* Effect.catchTag(put(subject, "Hello", { max_tokens: 1 }), "EngineUnreachable", () => unexpected(`${name}: the engine did not survive it`))
  if (next.usage.completion_tokens !== 1) return yield* unexpected(`${name}: ${next.usage.completion_tokens} tokens instead of 1 after it`)
})

/** Malformed requests are refused, each with an error, and none harms the next request. */
export const badRequests: TrialCheck = {
  name: "bad_requests",
  class: "required",
  purpose: "Malformed requests are refused with an error, and the engine still generates after each",
  limitSeconds: seconds(20),
  run: Effect.fnUntraced(function* (subject) {
    const cases = malformed(subject)
    let refusals = 0
    for (const request of cases) {
      if (yield* isRefused(subject, request)) refusals++
      yield* survives(subject, request)
    }
    return `${refusals} of ${cases.length} refused, ${cases.length} survived`
  })
}

/**
 * The longest context is exactly the promised one. A request that fills it is answered. One more token is not
 * available: the engine refuses it or cuts the answer to the remaining room. It never cuts a prompt.
 */
export const contextEdge: TrialCheck = {
  name: "context_edge",
  class: "required",
  purpose: "The longest context is exactly the promised one: a full context is answered, one token more is not, and no prompt is cut",
  limitSeconds: ({ maxContext }) => 60 + maxContext / 500,
  skipped: ({ maxContext }) => (maxContext < 64 ? "context below 64" : null),
  run: Effect.fnUntraced(function* (subject) {
    const { client, maxContext, offers, salt, servedName } = subject
    // The contract of the engine states how many tokens at the end of the context it reserves.
    const most = 8 - (offers.unfilled ?? 0)
    const body = (length: number, max_tokens: number) => ({
      model: servedName,
      prompt: promptTokens(subject.vocabSize, length, seedOf(subject.seed, "context_edge")),
      cache_salt: salt,
      ...greedy,
      max_tokens,
      ignore_eos: true
    })
    const filled = yield* client.ask(textPath, body(maxContext - 8, 8))
    const { completion_tokens, prompt_tokens } = filled.usage
    if (prompt_tokens !== maxContext - 8 || completion_tokens !== most) {
      return yield* unexpected(`${prompt_tokens} + ${completion_tokens} tokens, asked for ${maxContext - 8} + ${most}`)
    }
    const more = yield* client.post(textPath, JSON.stringify(body(maxContext - 8, 9)))
    const cut = more.status === 200 ? decodeUsage(more.text) : Option.none()
    if (more.status !== 400 && Option.isNone(cut)) return yield* unexpected(`one_more: HTTP ${more.status}, not 400`, { status: more.status })
    if (Option.isSome(cut)) {
      const { usage } = cut.value
      if (usage.prompt_tokens !== maxContext - 8 || usage.completion_tokens !== most) {
        return yield* unexpected(`one_more: ${usage.prompt_tokens} + ${usage.completion_tokens} tokens, with room for ${maxContext - 8} + ${most}`)
      }
    }
    const { status } = yield* client.post(textPath, JSON.stringify(body(maxContext, 1)))
    if (status !== 400) return yield* unexpected(`full_prompt: HTTP ${status}, not 400`, { status })
    yield* put(subject, "Hello", { max_tokens: 1 })
    return `${maxContext} tokens`
  })
}
