import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { CompletionCounts, dataFrame, streamEnd } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { likelihoodTexts } from "../../src/suite/texts/likelihoodTexts.ts"
import { listenLocally } from "../listenLocally.ts"
import { callsOf, type Fault, number, Prompt, say, servedName, textOf } from "./fakeWords.ts"

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)
const Body = Schema.Struct({
  model: Schema.String,
  ...Prompt.fields,
  max_tokens: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  n: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  top_p: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  ignore_eos: optional(Schema.Boolean),
  stream: optional(Schema.Boolean),
  stop: optional(Schema.Array(Schema.String)),
  logprobs: optional(Schema.Union([Schema.Boolean, Schema.Int])),
  prompt_logprobs: optional(Schema.Int),
  cache_salt: optional(Schema.String)
})
const Several = Schema.StructWithRest(Schema.Struct({ prompt: Schema.NonEmptyArray(Schema.String) }), [Schema.Record(Schema.String, Schema.Unknown)])
const decodeSeveral = Schema.decodeUnknownOption(Schema.fromJsonString(Several))
const Answered = Schema.Struct({ choices: Schema.NonEmptyArray(Schema.Struct({ text: Schema.String })), usage: CompletionCounts })
const decodeAnswered = Schema.decodeUnknownSync(Answered)
const decodeBody = Schema.decodeUnknownOption(Schema.fromJsonString(Body))

export const fakeContext = 1024

const pairsOf = (text: string): ReadonlyArray<string> => {
  const words = text.split(text.includes(" ") ? " " : "")
  return words.slice(1).map((word, at) => `${words[at]} ${word}`)
}
const known = new Set(likelihoodTexts.flatMap(({ text }) => pairsOf(text)))

/** An engine that makes its words from the prompt's hash: as good as its fault lets it be. */
export const serveFakeEngine = Effect.fnUntraced(function* (fault?: Fault) {
  let requests = 0
  let active = 0
  const cache = new Set<string>()
  const has = (candidate: Fault) => fault === candidate

  const json = (response: ServerResponse, status: number, body: object) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  }
  const refuse = (response: ServerResponse, status: number) => json(response, status, has("refuses without an error body") ? {} : { error: { message: "no" } })

  /** Several prompts are answered one after the other. */
  const answerEach = (path: string, { prompt: prompts, ...body }: typeof Several.Type, response: ServerResponse) => {
    const answers: Array<typeof Answered.Type> = []
    for (const prompt of has("one answer for all prompts") ? prompts.map(() => prompts[0]) : prompts) {
      answer(path, JSON.stringify({ ...body, prompt }), response, (_, one) => answers.push(decodeAnswered(one)))
    }
    const sum = (of: (usage: CompletionCounts) => number) => answers.reduce((all, { usage }) => all + of(usage), 0)
    const usage = {
      prompt_tokens: sum((each) => each.prompt_tokens),
      completion_tokens: sum((each) => each.completion_tokens),
      total_tokens: sum((each) => each.total_tokens)
    }
    return json(response, 200, { choices: answers.flatMap(({ choices: [choice] }, index) => [{ ...choice, index }]), usage })
  }

  const answer = (
    path: string,
    text: string,
    response: ServerResponse,
    reply: (status: number, body: object) => unknown = (status, body) => json(response, status, body)
  ): unknown => {
    const several = path === "/v1/completions" ? decodeSeveral(text) : Option.none()
    if (Option.isSome(several)) return answerEach(path, several.value, response)
    const decoded = decodeBody(text)
    const chat = path === "/v1/chat/completions"
    if (Option.isNone(decoded) || decoded.value.model !== servedName || (chat ? decoded.value.messages : decoded.value.prompt) === undefined) {
      if (has("stops after a bad request")) return response.destroy()
      return has("accepts bad requests") ? json(response, 200, {}) : refuse(response, has("breaks on bad requests") ? 500 : 400)
    }
    const body = decoded.value
    requests++
    if (has("every other request fails") && requests % 2 === 0) return refuse(response, 500)
    const seed = textOf(body)
    const tools = has("functions are not in the prompt") || body.tool_choice === "none" ? 0 : (body.tools?.length ?? 0)
    const requestTokens = Array.isArray(body.prompt) ? body.prompt.length : seed.split(/\s+/).length + tools
    const limit = has("limit off by one") ? fakeContext - 1 : fakeContext
    if (requestTokens + body.max_tokens > limit && !has("cuts long prompts")) return refuse(response, has("breaks at the limit") ? 500 : 400)
    const promptTokens = Math.min(requestTokens, fakeContext - body.max_tokens)
    // It knows no such keyword, and says so.
    const rare = body.response_format?.json_schema?.name === "multiple"
    if (rare && !has("rare keywords of schemas are ignored")) return refuse(response, 400)
    const natural = has("never reports stop") ? Number.POSITIVE_INFINITY : 3 + (number(seed) % 16)
    const answer = say(body, { fault, requests, active, natural })
    const calls = callsOf(body, fault)
    const fullWords = calls.length > 0 ? [] : answer.words
    const full = fullWords.join("")
    const cut = body.stop?.map((stop) => full.indexOf(stop)).find((at) => at >= 0)
    const stopped = cut !== undefined && !(has("stop strings leak when streamed") && body.stream === true)
    const words = stopped ? [full.slice(0, cut)] : fullWords
    const count = calls.length > 0 ? Math.min(20, body.max_tokens) : stopped ? Math.max(1, words[0]?.split(" ").length ?? 1) : answer.count
    const reason = has("always reports stop")
      ? "stop"
      : has("never reports stop")
        ? "abort"
        : calls.length > 0
          ? body.max_tokens < 20
            ? "length"
            : "tool_calls"
          : stopped || answer.ended
            ? "stop"
            : "length"
    const prompt = has("prompt is counted differently when streamed") && body.stream === true ? promptTokens + 1 : promptTokens
    const completion = has("usage one short") ? count - 1 : has("reserves the last two tokens") ? Math.min(count, fakeContext - requestTokens - 2) : count
    const key = `${has("salt is ignored") ? "" : body.cache_salt} ${seed}`
    const cached = has("nothing is cached") || !cache.has(key) ? 0 : requestTokens - 1
    cache.add(key)
    const details = has("cached tokens are not reported") ? {} : { prompt_tokens_details: { cached_tokens: cached } }
    const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, ...details }
    const logprobs = words.map((_, at) => (has("skips the best token") && at === 9 ? -4 : has("cached answers differ") && cached > 0 ? -0.9 : -0.1))
    if (body.stream !== true) {
      const content = words.join("")
      const pairs =
        body.prompt_logprobs === undefined
          ? []
          : pairsOf(seed).map((pair) => (has("weights are wrong") || !known.has(pair) ? -6 : has("order is ignored") ? -5.9 : -2))
      const scored =
        body.prompt_logprobs === undefined ? {} : { prompt_logprobs: [null, ...pairs.map((logprob) => ({ "1": { logprob: has("NaN") ? 1 : logprob } }))] }
      const scores =
        typeof body.logprobs === "number"
          ? { logprobs: { token_logprobs: logprobs, top_logprobs: logprobs.map(() => ({ best: -0.1, other: -3 })) } }
          : { logprobs: body.logprobs === true ? { content: words.map((token) => ({ token, top_logprobs: [{ token }] })) } : null }
      const choice = chat ? { message: { role: "assistant", content, tool_calls: calls } } : { text: content }
      return reply(200, { choices: [{ index: 0, ...choice, ...scores, token_ids: answer.ids, finish_reason: reason }], usage, ...scored })
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    const frame = (data: object | string) => response.write(dataFrame(data))
    const piece = (word: string) => (chat ? { delta: { content: word } } : { text: word })
    if (chat) for (let role = 0; role < (has("two roles") ? 2 : 1); role++) frame({ choices: [{ delta: { role: "assistant", content: "" } }] })
    for (const [index, call] of calls.entries()) frame({ choices: [{ delta: { tool_calls: [{ index, ...call }] }, finish_reason: null }] })
    for (const word of has("last chunk lost") ? words.slice(0, -1) : words) frame({ choices: [{ ...piece(word), finish_reason: null }] })
    frame({ choices: [{ ...piece(""), finish_reason: reason }] })
    if (!has("no usage chunk")) frame({ choices: [], usage })
    if (!has("no end marker")) frame(streamEnd)
    if (has("sends more after the end marker")) frame({ choices: [] })
    return response.end()
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ""
    if (path === "/v1/models") {
      return json(response, 200, { data: [{ id: has("other name") ? "other" : servedName, max_model_len: has("other context") ? 512 : fakeContext }] })
    }
    if (path === "/version") return json(response, 200, { version: has("other version") ? "9.9.9" : has("part of its version") ? "1.0" : "1.0.0" })
    if (path === "/model_info") return json(response, 200, { weight_version: has("weights of another commit") ? "d".repeat(40) : "c".repeat(40) })
    if (path === "/metrics") {
      const running = has("a request keeps running") ? 2 : active
      return response.writeHead(200).end(`vllm:num_requests_running{engine="0"} ${running}.0\n`)
    }
    const parts: Array<Buffer> = []
    for await (const part of request) parts.push(Buffer.from(part))
    active++
    // A turn of the loop, so that concurrent requests meet.
    await new Promise((resolve) => setImmediate(resolve))
    answer(path, Buffer.concat(parts).toString("utf8"), response)
    active--
    return undefined
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  const { url } = yield* listenLocally(server)
  return { url, requests: () => requests }
})
