import { createServer, type Socket } from "node:net"
import { dataFrame, streamEnd } from "@seatrial/domain"

// A fake engine with a known schedule and frames like vLLM: a fixed time to the first chunk and a fixed gap between chunks. Chunks are scheduled by
// the clock, so that delays do not accumulate. With a gap of 0 the complete answer is sent at once.

const firstMillis = Number(process.env.FIRST_MILLIS)
const gapMillis = Number(process.env.GAP_MILLIS)
const perChunk = Number(process.env.TOKENS_PER_CHUNK)

const common = { id: "cmpl-schedule", object: "text_completion", created: 1_700_000_000, model: "schedule" }
const chunk = (data: string) => `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`
const frame = (body: object) => chunk(dataFrame({ ...common, ...body }))
const piece = frame({ choices: [{ index: 0, text: " deck".repeat(perChunk), logprobs: null, finish_reason: null, stop_reason: null }] })
const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
const ending = (input: number, output: number) =>
  frame({ choices: [{ index: 0, text: "", logprobs: null, finish_reason: "length", stop_reason: null }] }) +
  frame({ choices: [], usage: { prompt_tokens: input, total_tokens: input + output, completion_tokens: output } }) +
  `${chunk(dataFrame(streamEnd))}0\r\n\r\n`

interface Answer {
  readonly socket: Socket
  readonly input: number
  readonly output: number
  readonly beganAt: number
  sent: number
}
const answers = new Set<Answer>()

/** Writes the chunks that are due. */
const tick = () => {
  const now = performance.now()
  for (const answer of answers) {
    const { beganAt, input, output, socket } = answer
    const chunks = Math.ceil(output / perChunk)
    const due = gapMillis === 0 ? chunks : Math.min(chunks, Math.floor((now - beganAt - firstMillis) / gapMillis) + 1)
    if (socket.destroyed) answers.delete(answer)
    else if (due > answer.sent) {
      socket.write((answer.sent === 0 ? head : "") + piece.repeat(due - answer.sent) + (due === chunks ? ending(input, output) : ""))
      answer.sent = due
      if (due === chunks) answers.delete(answer)
    }
  }
}
if (gapMillis > 0) setInterval(tick, 1)

const server = createServer({ noDelay: true }, (socket) => {
  let text = ""
  socket.on("error", () => {})
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1")
    const end = text.indexOf("\r\n\r\n")
    if (end === -1) return
    if (text.startsWith("GET")) {
      text = ""
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
      return
    }
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0)
    if (text.length < end + 4 + length) return
    const beganAt = performance.now()
    const body = text.slice(end + 4, end + 4 + length)
    text = text.slice(end + 4 + length)
    const output = Number(/"max_tokens":(\d+)/.exec(body)?.[1] ?? 1)
    answers.add({ socket, input: body.slice(body.indexOf('"prompt"')).split(",").length, output, beganAt, sent: 0 })
    if (gapMillis === 0) tick()
  })
})
server.listen(Number(process.env.PORT), "127.0.0.1")
process.once("SIGTERM", () => process.exit(0))
