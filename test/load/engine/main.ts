import { createServer, type ServerResponse } from "node:http"

// An engine of fixed speed and nothing else: an answer in one piece at once; a stream's first frame at once and each other one 2 ms after the one before.
// It stands for an engine where the gateway is measured, so its words do not matter; its frames are those of vLLM.

const frames = 16
const frameMillis = 2
const usage = (output: number) => ({ prompt_tokens: 24, total_tokens: 24 + output, completion_tokens: output, prompt_tokens_details: { cached_tokens: 16 } })
const common = { id: "chatcmpl-bench", created: 1_700_000_000, model: "bench" }

const whole = JSON.stringify({
  ...common,
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "All hands on deck, the trial begins at dawn. ".repeat(8) },
      logprobs: null,
      finish_reason: "stop",
      stop_reason: null
    }
  ],
  usage: usage(frames)
})
const frame = (choices: ReadonlyArray<unknown>, output: number) =>
  `data: ${JSON.stringify({ ...common, object: "chat.completion.chunk", choices, usage: usage(output) })}\n\n`
const pieces = Array.from({ length: frames }, (_, index) =>
  frame([{ index: 0, delta: { content: " deck" }, logprobs: null, finish_reason: index === frames - 1 ? "stop" : null }], index + 1)
)
const closing = `${frame([], frames)}data: [DONE]\n\n`

const stream = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
  let sent = 0
  const next = () => {
    if (response.destroyed) return
    response.write(pieces[sent])
    sent++
    if (sent < frames) setTimeout(next, frameMillis)
    else response.end(closing)
  }
  next()
}

const server = createServer((request, response) => {
  if (request.method === "GET") {
    response.writeHead(200).end()
    return
  }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    if (Buffer.concat(chunks).includes('"stream":true')) return stream(response)
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(whole) }).end(whole)
  })
})
server.keepAliveTimeout = 65_000
server.listen(Number(process.env.PORT), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
