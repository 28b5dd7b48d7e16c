import { createServer, type Server, type ServerResponse } from "node:http"
import { dataFrame, streamEnd } from "@seatrial/domain"

const usage = (output: number) => ({ prompt_tokens: 24, total_tokens: 24 + output, completion_tokens: output })
const common = { id: "chatcmpl-stand-in", created: 1_700_000_000, model: "stand-in" }
const words = ["All ", "hands ", "on ", "deck."]
const frame = (choices: ReadonlyArray<unknown>, output: number) => dataFrame({ ...common, object: "chat.completion.chunk", choices, usage: usage(output) })

const stream = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
  let sent = 0
  const next = () => {
    if (response.destroyed) return
    const last = sent === words.length - 1
    response.write(frame([{ index: 0, delta: { content: words[sent] }, finish_reason: last ? "stop" : null }], sent + 1))
    sent++
    if (!last) return void setTimeout(next, 20)
    response.end(`${frame([], words.length)}${dataFrame(streamEnd)}`)
  }
  next()
}

/** What the operator reads before it deletes an engine. */
const metricsOf = (running: number) => `vllm:num_requests_running ${running}\nvllm:num_requests_waiting 0\n`

/**
 * An engine that computes nothing: it gives every request the same answer, at once or as a short stream, or an error while
 * it is spoiled. Requests in progress finish before it ends.
 */
export const startEngine = (host: string, port: number, isSpoiled: () => boolean): Promise<Server> =>
  new Promise((resolve, reject) => {
    let running = 0
    const server = createServer((request, response) => {
      if (request.method === "GET") return void response.writeHead(200).end(request.url === "/metrics" ? metricsOf(running) : "")
      running++
      response.once("close", () => running--)
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        if (isSpoiled()) return void response.writeHead(500, { "content-type": "application/json" }).end('{"error":{"message":"spoiled"}}')
        if (Buffer.concat(chunks).includes('"stream":true')) return stream(response)
        const message = { role: "assistant", content: words.join("") }
        const body = JSON.stringify({
          ...common,
          object: "chat.completion",
          choices: [{ index: 0, message, finish_reason: "stop" }],
          usage: usage(words.length)
        })
        response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
      })
    })
    server.keepAliveTimeout = 60_000
    server.once("error", reject)
    server.listen(port, host, () => resolve(server))
  })

/** Ends when every request in progress is answered, after ten seconds at most. */
export const stopEngine = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    // Callers keep a busy connection alive for a minute after its answer.
    const idle = setInterval(() => server.closeIdleConnections(), 20)
    const late = setTimeout(() => server.closeAllConnections(), 10_000)
    server.close(() => {
      clearInterval(idle)
      clearTimeout(late)
      resolve()
    })
  })
