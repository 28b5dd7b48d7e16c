import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Option, Schema } from "effect"

export const faults = [
  "other name",
  "other context",
  "other version",
  "usage one short",
  "prompt counted otherwise when streamed",
  "no usage chunk",
  "always says stop",
  "never says stop",
  "last chunk lost",
  "no done",
  "says more after done",
  "two roles",
  "answers vary",
  "answers vary under load",
  "every tenth answer varies",
  "takes bad requests",
  "breaks on bad requests",
  "refuses without an error body",
  "dies of a bad request",
  "limit off by one",
  "cuts long prompts",
  "breaks at the limit",
  "something runs on",
  "every other request fails"
] as const
export type Fault = (typeof faults)[number]

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)
const Body = Schema.Struct({
  model: Schema.String,
  messages: optional(Schema.NonEmptyArray(Schema.Struct({ role: Schema.String, content: Schema.String }))),
  prompt: optional(Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.Int)])),
  max_tokens: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  temperature: optional(Schema.Finite),
  top_p: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  ignore_eos: optional(Schema.Boolean),
  stream: optional(Schema.Boolean)
})
const decodeBody = Schema.decodeUnknownOption(Schema.fromJsonString(Body))

const number = (text: string) => createHash("sha256").update(text).digest().readUInt32BE(0)

const servedName = "acme/fake"
export const fakeContext = 1024

/** An engine that makes its words from the prompt's hash: as good as its fault lets it be. */
export const serveFakeEngine = Effect.fnUntraced(function* (fault?: Fault) {
  let requests = 0
  let active = 0
  const has = (candidate: Fault) => fault === candidate

  const json = (response: ServerResponse, status: number, body: object) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  }
  const refuse = (response: ServerResponse, status: number) => json(response, status, has("refuses without an error body") ? {} : { error: { message: "no" } })

  const answer = async (path: string, text: string, response: ServerResponse) => {
    const decoded = decodeBody(text)
    const chat = path === "/v1/chat/completions"
    if (Option.isNone(decoded) || decoded.value.model !== servedName || (chat ? decoded.value.messages : decoded.value.prompt) === undefined) {
      if (has("dies of a bad request")) return response.destroy()
      return has("takes bad requests") ? json(response, 200, {}) : refuse(response, has("breaks on bad requests") ? 500 : 400)
    }
    const body = decoded.value
    requests++
    if (has("every other request fails") && requests % 2 === 0) return refuse(response, 500)
    const input = body.messages?.[0].content ?? body.prompt ?? ""
    const seed = typeof input === "string" ? input : input.join(",")
    const asked = typeof input === "string" ? input.split(/\s+/).length : input.length
    const limit = has("limit off by one") ? fakeContext - 1 : fakeContext
    if (asked + body.max_tokens > limit && !has("cuts long prompts")) return refuse(response, has("breaks at the limit") ? 500 : 400)
    const promptTokens = Math.min(asked, fakeContext - body.max_tokens)
    const natural = has("never says stop") ? Number.POSITIVE_INFINITY : 3 + (number(seed) % 16)
    const count = body.ignore_eos === true ? body.max_tokens : Math.min(body.max_tokens, natural)
    const salt =
      has("answers vary") || (has("answers vary under load") && active > 1) || (has("every tenth answer varies") && requests % 10 === 0) ? String(requests) : ""
    const words = Array.from({ length: count }, (_, index) => ` w${number(`${seed}${salt}${index}`) % 1000}`)
    const reason = has("always says stop")
      ? "stop"
      : has("never says stop")
        ? "abort"
        : count === body.max_tokens && (body.ignore_eos === true || natural > count)
          ? "length"
          : "stop"
    const prompt = has("prompt counted otherwise when streamed") && body.stream === true ? promptTokens + 1 : promptTokens
    const completion = has("usage one short") ? count - 1 : count
    const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
    if (body.stream !== true) {
      const said = words.join("")
      const choice = chat ? { message: { role: "assistant", content: said } } : { text: said }
      return json(response, 200, { choices: [{ index: 0, ...choice, finish_reason: reason }], usage })
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    const frame = (data: object | string) => response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`)
    const piece = (said: string) => (chat ? { delta: { content: said } } : { text: said })
    if (chat) for (let role = 0; role < (has("two roles") ? 2 : 1); role++) frame({ choices: [{ delta: { role: "assistant", content: "" } }] })
    for (const said of has("last chunk lost") ? words.slice(0, -1) : words) frame({ choices: [{ ...piece(said), finish_reason: null }] })
    frame({ choices: [{ ...piece(""), finish_reason: reason }] })
    if (!has("no usage chunk")) frame({ choices: [], usage })
    if (!has("no done")) frame("[DONE]")
    if (has("says more after done")) frame({ choices: [] })
    response.end()
  }

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ""
    if (path === "/v1/models") {
      return json(response, 200, { data: [{ id: has("other name") ? "other" : servedName, max_model_len: has("other context") ? 512 : fakeContext }] })
    }
    if (path === "/version") return json(response, 200, { version: has("other version") ? "9.9.9" : "1.0.0" })
    if (path === "/metrics") return response.writeHead(200).end(`vllm:num_requests_running{engine="0"} ${has("something runs on") ? 2 : 0}.0\n`)
    const parts: Array<Buffer> = []
    for await (const part of request) parts.push(Buffer.from(part))
    active++
    // A turn of the loop, so that concurrent requests meet.
    await new Promise((resolve) => setImmediate(resolve))
    await answer(path, Buffer.concat(parts).toString("utf8"), response)
    active--
    return undefined
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  const address: AddressInfo | string | null = server.address()
  const port = address !== null && typeof address === "object" ? address.port : 0
  return { url: `http://127.0.0.1:${port}`, requests: () => requests }
})
