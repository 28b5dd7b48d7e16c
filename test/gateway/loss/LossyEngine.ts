import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Effect, Schema } from "effect"

/** What an engine does with a request: the request itself says so. */
export const Plan = Schema.Struct({
  /** Milliseconds between tokens; 0: as fast as the reader takes them. */
  pace: Schema.Int,
  /** Tokens that come at once, before the others. */
  burst: Schema.optionalKey(Schema.Int),
  tokens: Schema.Int,
  /** Prompt tokens of each class, disjoint. */
  input: Schema.Int,
  read: Schema.Int,
  written: Schema.Int,
  /** Ends without any usage. */
  silent: Schema.Boolean
})
export type Plan = typeof Plan.Type

const decode = Schema.decodeUnknownSync(
  Schema.fromJsonString(
    Schema.Struct({ stream: Schema.optionalKey(Schema.Boolean), messages: Schema.Array(Schema.Struct({ content: Schema.fromJsonString(Plan) })) })
  )
)

export interface LossyEngine {
  readonly url: string
  /** Ids of the requests that it worked on. */
  readonly worked: Set<string>
  /** Streams under way, and those that have ended of the ones that were sent as fast as they were taken. */
  readonly streams: { all: number; floodsEnded: number }
  /** Dies and is there again at once. */
  readonly die: () => void
}

const envelope = { id: "chatcmpl-1", object: "chat.completion", created: 1, model: "served" }

const usageOf = ({ input, read, written }: Plan, completion: number) => ({
  prompt_tokens: input + read + written,
  completion_tokens: completion,
  total_tokens: input + read + written + completion,
  prompt_tokens_details: { cached_tokens: read, created_cache_tokens: written }
})

const frame = (value: object) => dataFrame({ ...envelope, object: "chat.completion.chunk", ...value })

const answer = (request: IncomingMessage, response: ServerResponse, body: string, streams: LossyEngine["streams"]) => {
  const { messages, stream } = decode(body)
  const plan = messages[0]?.content
  if (plan === undefined) return response.writeHead(400).end()
  const usageMember = (completion: number) => (plan.silent ? {} : { usage: usageOf(plan, completion) })
  if (stream !== true) {
    const choices = [{ index: 0, message: { role: "assistant", content: "x".repeat(plan.tokens) }, finish_reason: "stop" }]
    const timer = setTimeout(
      () => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ...envelope, choices, ...usageMember(plan.tokens) })),
      plan.pace * plan.tokens
    )
    return request.once("close", () => (response.writableEnded ? undefined : response.destroyed && clearTimeout(timer)))
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(frame({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }], ...usageMember(0) }))
  let sent = 0
  const token = () => {
    sent++
    return response.write(frame({ choices: [{ index: 0, delta: { content: "x" }, logprobs: null, finish_reason: null }], ...usageMember(sent) }))
  }
  while (sent < (plan.burst ?? 0)) token()
  if (plan.pace === 0) {
    const flood = () => {
      while (sent < plan.tokens) if (!token()) return void response.once("drain", flood)
      return void response.end()
    }
    response.once("close", () => streams.floodsEnded++)
    return flood()
  }
  const timer = setInterval(() => {
    if (sent < plan.tokens) return void token()
    clearInterval(timer)
    response.write(frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }))
    if (!plan.silent) response.write(frame({ choices: [], ...usageMember(plan.tokens) }))
    response.end(dataFrame(streamEnd))
  }, plan.pace)
  return response.once("close", () => clearInterval(timer))
}

/** An engine that does what each request says, until the scope closes. */
export const openLossyEngine = Effect.acquireRelease(
  Effect.callback<LossyEngine & { readonly close: () => void }>((resume) => {
    const worked = new Set<string>()
    const sockets = new Set<Socket>()
    const streams = { all: 0, floodsEnded: 0 }
    const server = createServer((request, response) => {
      if (request.method === "GET") return response.writeHead(200).end()
      // It has no tokenizer, so that the gateway estimates the prompts of callers who leave.
      if (request.url !== "/v1/chat/completions") return response.writeHead(404).end()
      const id = request.headers["x-request-id"]
      if (typeof id === "string") worked.add(id)
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      streams.all++
      response.once("close", () => streams.all--)
      request.on("end", () => answer(request, response, Buffer.concat(chunks).toString("utf8"), streams))
      return response.on("error", () => response.destroy())
    })
    server.on("connection", (socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    })
    const die = () => {
      for (const socket of sockets) socket.resetAndDestroy()
    }
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, worked, streams, die, close: () => void server.close(die) }))
    })
  }),
  ({ close, die }) =>
    Effect.sync(() => {
      close()
      die()
    })
)
