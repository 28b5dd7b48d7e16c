import { dataFrame, eventFrame, streamEnd } from "@seatrial/domain"
import { Effect, type Scope } from "effect"
import type { Call, FakeEngine } from "./fakeEngine.ts"
import { makeEngine } from "./fakeEngine.ts"

/**
 * When an engine reports usage in a stream: `running` in each frame; `runningUncached` the same, but cached tokens only
 * at the end; `last` in the last frame only.
 */
export type UsageReports = "running" | "runningUncached" | "last"

/** The tokens that the engine computed for one request. */
export interface Computation {
  readonly prompt: number
  /** Tokens read from the prefix cache. */
  readonly cached: number
  /** Computed tokens of the prompt. */
  prefilled: number
  output: number
  /** Whether the answer was completed. */
  isComplete: boolean
}

export interface CachingEngine {
  readonly url: string
  readonly engine: FakeEngine
  /** By request ID. */
  readonly computations: Map<string, Computation>
  usage: UsageReports
}

const chunkSize = 8

const openAi = ({ cached, output, prompt }: Computation, details = true) => ({
  prompt_tokens: prompt,
  completion_tokens: output,
  total_tokens: prompt + output,
  ...(details ? { prompt_tokens_details: { cached_tokens: cached } } : {})
})
const anthropic = ({ cached, output, prompt }: Computation) => ({
  input_tokens: prompt - cached,
  output_tokens: output,
  cache_read_input_tokens: cached
})
const ofResponse = ({ cached, output, prompt }: Computation) => ({
  input_tokens: prompt,
  input_tokens_details: { cached_tokens: cached },
  output_tokens: output,
  total_tokens: prompt + output
})

interface Speech {
  readonly begin: (so: Computation) => string
  readonly token: (so: Computation) => string
  readonly end: (so: Computation) => string
  readonly answer: (so: Computation) => object
}

const openAiSpeech = (isChat: boolean, reports: UsageReports): Speech => {
  const running = (so: Computation) => (reports === "last" ? {} : { usage: openAi(so, reports === "running") })
  const envelope = { id: "x", object: isChat ? "chat.completion.chunk" : "text_completion", created: 1, model: "m" }
  const choice = (text: string, finish_reason: string | null, role = {}) =>
    isChat ? { index: 0, delta: { ...role, content: text }, finish_reason } : { index: 0, text, finish_reason }
  return {
    begin: (so) => (isChat ? dataFrame({ ...envelope, choices: [choice("", null, { role: "assistant" })], ...running(so) }) : ""),
    token: (so) => dataFrame({ ...envelope, choices: [choice("a ", null)], ...running(so) }),
    end: (so) =>
      `${dataFrame({ ...envelope, choices: [choice("", "stop")], ...running(so) })}${dataFrame({ ...envelope, choices: [], usage: openAi(so) })}${dataFrame(streamEnd)}`,
    answer: (so) => ({
      ...envelope,
      choices: [isChat ? { index: 0, message: { role: "assistant", content: "a" }, finish_reason: "stop" } : choice("a", "stop")],
      usage: openAi(so)
    })
  }
}

const message = { id: "x", type: "message", role: "assistant", model: "m", content: [] }
const messagesSpeech: Speech = {
  begin: (so) =>
    eventFrame("message_start", { message: { ...message, stop_reason: null, usage: anthropic(so) } }) +
    eventFrame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  token: () => eventFrame("content_block_delta", { index: 0, delta: { type: "text_delta", text: "a " } }),
  end: (so) =>
    eventFrame("content_block_stop", { index: 0 }) +
    eventFrame("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: anthropic(so) }) +
    eventFrame("message_stop", {}),
  answer: (so) => ({ ...message, content: [{ type: "text", text: "a" }], stop_reason: "end_turn", stop_sequence: null, usage: anthropic(so) })
}

const response = (status: string, more: object) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  status,
  model: "m",
  output: [],
  error: null,
  usage: null,
  ...more
})
const responsesSpeech: Speech = {
  begin: () => eventFrame("response.created", { sequence_number: 0, response: response("in_progress", {}) }),
  token: () => eventFrame("response.output_text.delta", { sequence_number: 1, item_id: "i", output_index: 0, content_index: 0, delta: "a ", logprobs: [] }),
  end: (so) => eventFrame("response.completed", { sequence_number: 2, response: response("completed", { usage: ofResponse(so) }) }),
  answer: (so) => response("completed", { usage: ofResponse(so) })
}

const speechOf = (path: string, reports: UsageReports): Speech =>
  path === "/v1/messages" ? messagesSpeech : path === "/v1/responses" ? responsesSpeech : openAiSpeech(path !== "/v1/completions", reports)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

/** The words of a prompt; each is one token. */
const wordsOf = (text: string): ReadonlyArray<string> => text.split(/[^\w]+/).filter((word) => word !== "")

const parse = (body: string): Readonly<Record<string, unknown>> => {
  const value: unknown = JSON.parse(body)
  return isObject(value) ? value : {}
}

/**
 * An engine with a prefix cache. It computes a prompt in chunks and caches them, even if the caller disconnects, and
 * then stops. Each step takes one turn of the event loop.
 */
export const makeCachingEngine: Effect.Effect<CachingEngine, never, Scope.Scope> = Effect.gen(function* () {
  const cache = new Set<string>()
  const computations = new Map<string, Computation>()

  const serve = (call: Call) => {
    const { request, response: answer } = call
    const path = request.url ?? ""
    const members = parse(call.body)
    const words = wordsOf(JSON.stringify([members.prompt, members.messages, members.input].filter((part) => part !== undefined)))
    const prefixes = words.map((_, index) => words.slice(0, index + 1).join(" "))
    let cached = 0
    while (cached + chunkSize < words.length && cache.has(prefixes[cached + chunkSize - 1] ?? "")) cached += chunkSize
    const so: Computation = { prompt: words.length, cached, prefilled: cached, output: 0, isComplete: false }
    computations.set(String(request.headers["x-request-id"]), so)
    const isStream = members.stream === true
    const limit = Number(members.max_tokens ?? members.max_completion_tokens ?? members.max_output_tokens ?? 8)
    const speech = speechOf(path, caching.usage)
    if (isStream && path === "/v1/responses") answer.writeHead(200, { "content-type": "text/event-stream" }).write(speech.begin(so))
    const step = () => {
      // Both vLLM and SGLang stop the work of a disconnected caller.
      if (call.isCut() || answer.destroyed) return
      if (so.prefilled < so.prompt) {
        so.prefilled = Math.min(so.prompt, so.prefilled + chunkSize)
        cache.add(prefixes[so.prefilled - 1] ?? "")
        if (so.prefilled === so.prompt && isStream && path !== "/v1/responses") {
          answer.writeHead(200, { "content-type": "text/event-stream" }).write(speech.begin(so))
        }
      } else if (so.output < limit) {
        so.output++
        if (isStream) answer.write(speech.token(so))
      } else {
        so.isComplete = true
        if (isStream) answer.end(speech.end(so))
        else answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(speech.answer(so)))
        return
      }
      setImmediate(step)
    }
    setImmediate(step)
  }

  const engine = yield* makeEngine(serve)
  const { observed } = engine
  engine.observed = (call) => {
    if (call.request.url !== "/tokenize") return observed(call)
    const { prompt } = parse(call.body)
    const words = wordsOf(typeof prompt === "string" ? prompt : "")
    call.response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ count: words.length, max_model_len: 2_048, tokens: [] }))
  }
  const caching: CachingEngine = { url: engine.url, engine, computations, usage: "running" }
  return caching
})
