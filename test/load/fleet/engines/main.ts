import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Schema } from "effect"
import { PrefixCache } from "./PrefixCache.ts"

// Fake engines of a model, in one process. Each has a port of `PORTS`, processes `SLOTS` requests at a time, takes `MILLIS` for each,
// and has a prefix cache of `CACHE_TOKENS` tokens. It computes nothing. `GET /counts` returns the tokens of its prompts, and how many were cached.

const Chat = Schema.fromJsonString(Schema.Struct({ messages: Schema.NonEmptyArray(Schema.Struct({ content: Schema.String })) }))
const decode = Schema.decodeUnknownSync(Chat)

const slots = Number(process.env.SLOTS)
const millis = Number(process.env.MILLIS)
const answer = "All hands on deck, the trial begins at dawn. ".repeat(8)

const bodyOf = (prompt: number, cached: number) =>
  JSON.stringify({
    id: "chatcmpl-bench",
    created: 1_700_000_000,
    model: "bench",
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: answer }, logprobs: null, finish_reason: "stop" }],
    usage: { prompt_tokens: prompt, total_tokens: prompt + 100, completion_tokens: 100, prompt_tokens_details: { cached_tokens: cached } }
  })

const reply = (response: ServerResponse, body: string) =>
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)

const readText = async (request: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString("utf8")
}

const startEngine = (port: number) => {
  const cache = new PrefixCache(Number(process.env.CACHE_TOKENS))
  const counts = { prompt: 0, cached: 0 }
  const waiting: Array<() => void> = []
  let running = 0
  const next = () => {
    if (running >= slots) return
    const begin = waiting.shift()
    if (begin === undefined) return
    running++
    begin()
  }
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { messages } = decode(await readText(request))
    // About four characters are a token.
    const prompt = Math.ceil(messages.reduce((sum, { content }) => sum + content.length, 0) / 4)
    waiting.push(() => {
      const cached = cache.use(messages[0].content, prompt)
      counts.prompt += prompt
      counts.cached += cached
      setTimeout(() => {
        running--
        reply(response, bodyOf(prompt, cached))
        next()
      }, millis)
    })
    next()
  }
  const server = createServer({ noDelay: true }, (request, response) => {
    if (request.method === "POST") void serve(request, response)
    else if (request.url === "/counts") reply(response, JSON.stringify(counts))
    else response.writeHead(200).end()
  })
  server.keepAliveTimeout = 65_000
  server.listen({ port, host: "127.0.0.1", backlog: 4_096 })
}

for (const port of (process.env.PORTS ?? "").split(",")) startEngine(Number(port))
process.once("SIGTERM", () => process.exit(0))
