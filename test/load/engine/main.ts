import { createServer, type ServerResponse } from "node:http"
import { dataFrame, streamEnd } from "@seatrial/domain"

// A fake engine with a fixed speed for benchmarks of the gateway, with frames like vLLM. `seed` of a request sets the milliseconds of an answer or
// between the frames of a stream, and `max_tokens` sets the number of frames. Each frame contains the time at which it was sent.

const usage = (output: number) => ({ prompt_tokens: 24, total_tokens: 24 + output, completion_tokens: output, prompt_tokens_details: { cached_tokens: 16 } })
const common = { id: "chatcmpl-bench", created: 1_700_000_000, model: "bench" }

const completion = JSON.stringify({
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
  usage: usage(16)
})
const frame = (choices: ReadonlyArray<unknown>, output: number) => dataFrame({ ...common, object: "chat.completion.chunk", choices, usage: usage(output) })
const opening = frame([{ index: 0, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }], 0)
const piece = (index: number, frames: number) => {
  const sent = Math.round(Number(process.hrtime.bigint() / 1_000n))
  return frame([{ index: 0, delta: { content: ` ${sent}` }, logprobs: null, finish_reason: index === frames - 1 ? "stop" : null }], index + 1)
}

const stream = (response: ServerResponse, frames: number, pause: number) => {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
  let sent = 0
  const next = () => {
    if (response.destroyed) return clearInterval(timer)
    response.write(sent === 0 ? opening + piece(sent, frames) : piece(sent, frames))
    sent++
    if (sent < frames) return
    clearInterval(timer)
    response.end(frame([], frames) + dataFrame(streamEnd))
  }
  const timer = setInterval(next, pause)
  next()
}

const answer = (response: ServerResponse) =>
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(completion) }).end(completion)

const numberIn = (body: string, name: string, otherwise: number) => Number(new RegExp(`"${name}":\\s*(\\d+)`).exec(body)?.[1] ?? otherwise)

const server = createServer({ noDelay: true }, (request, response) => {
  if (request.method === "GET") {
    response.writeHead(200).end()
    return
  }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString("latin1")
    if (/"stream":\s*true/.test(body)) return stream(response, numberIn(body, "max_tokens", 16), numberIn(body, "seed", 2))
    const pause = numberIn(body, "seed", 0)
    if (pause === 0) answer(response)
    else setTimeout(() => answer(response), pause)
  })
})
server.keepAliveTimeout = 65_000
server.listen({ port: Number(process.env.PORT), host: "127.0.0.1", backlog: 4_096 })
process.once("SIGTERM", () => process.exit(0))
