import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { dataFrame, streamEnd } from "@seatrial/domain"

// A stand-in engine. A message with `{"tokens":T,"paceMillis":P}` as its content sets the length and the pace of its answer; all other messages get a short, quick answer.

const envelope = { id: "chatcmpl-1", object: "chat.completion", created: 1, model: "served" }
const usageOf = (completion: number) => ({ prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion })
const frame = (value: object) => dataFrame({ ...envelope, object: "chat.completion.chunk", ...value })

/** Characters in which the plan and the flag of a stream are searched, at both ends of a body. */
const searched = 4_096

const planOf = (body: string) => {
  const ends = `${body.slice(0, searched)} ${body.slice(-searched)}`
  const [, tokens = "8", paceMillis = "4"] = /\{\\"tokens\\":(\d+),\\"paceMillis\\":(\d+)\}/.exec(ends) ?? []
  return { tokens: Number(tokens), paceMillis: Number(paceMillis), streamed: ends.includes('"stream":true') }
}

const generate = (response: ServerResponse, body: string) => {
  const { paceMillis, streamed, tokens } = planOf(body)
  if (!streamed) {
    const choices = [{ index: 0, message: { role: "assistant", content: "x".repeat(tokens) }, finish_reason: "stop" }]
    const answer = () => response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ...envelope, choices, usage: usageOf(tokens) }))
    const timer = setTimeout(answer, tokens * paceMillis)
    response.once("close", () => clearTimeout(timer))
    return
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(frame({ choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] }))
  let sent = 0
  const timer = setInterval(() => {
    if (sent < tokens) {
      sent++
      return void response.write(frame({ choices: [{ index: 0, delta: { content: "x" }, logprobs: null, finish_reason: null }], usage: usageOf(sent) }))
    }
    clearInterval(timer)
    response.write(frame({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }))
    response.write(frame({ choices: [], usage: usageOf(tokens) }))
    response.end(dataFrame(streamEnd))
  }, paceMillis)
  response.once("close", () => clearInterval(timer))
}

const serve = (request: IncomingMessage, response: ServerResponse) => {
  response.on("error", () => response.destroy())
  if (request.method === "GET") return void response.writeHead(request.url === "/metrics" ? 404 : 200).end()
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => generate(response, Buffer.concat(chunks).toString("utf8")))
}

const server = createServer(serve)
server.listen(0, "127.0.0.1", () => {
  const address = server.address()
  process.stdout.write(`listens on http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}\n`)
})
// The harness ends it by closing its input.
process.stdin.resume().once("end", () => process.exit(0))
