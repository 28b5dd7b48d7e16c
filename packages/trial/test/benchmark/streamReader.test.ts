import { createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { dataFrame, streamEnd } from "@seatrial/domain"
import { Deferred, Effect, Fiber } from "effect"
import { runBenchmark } from "../../src/benchmark/runBenchmark.ts"
import { StreamReader } from "../../src/benchmark/StreamReader.ts"
import { workload } from "../../src/benchmark/workload.ts"
import { listenLocally } from "../listenLocally.ts"

const piece = (text: string) => dataFrame({ choices: [{ index: 0, text, finish_reason: null }] })
const usage = { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 }
const end = [dataFrame({ choices: [{ index: 0, text: "", finish_reason: "length" }] }), dataFrame({ choices: [], usage }), dataFrame(streamEnd)].join("")
const events = `: a comment\nevent: message\n${piece("é€😀")}${dataFrame({ choices: [{ delta: { role: "assistant", content: "" } }] })}${dataFrame({ choices: [{ delta: { reasoning: "x" } }] })}${dataFrame({ choices: [{ delta: { tool_calls: [{}] } }] })}${end}`
const chunk = (data: string) => `${Buffer.byteLength(data).toString(16)}\r\n${data}\r\n`
const head = (...headers: ReadonlyArray<string>) =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${headers.map((header) => `${header}\r\n`).join("")}\r\n`

const forms = {
  chunks: `${head("Transfer-Encoding: chunked") + chunk(events.slice(0, 40)) + chunk(events.slice(40))}0\r\n\r\n`,
  "chunks with extensions and trailers": `${head("transfer-encoding: chunked")}${Buffer.byteLength(events).toString(16).toUpperCase()};x=y\r\n${events}\r\n0\r\nX-Trailer: 1\r\n\r\n`,
  "a length": head(`Content-Length: ${Buffer.byteLength(events)}`) + events
}

const read = (text: string, at = text.length) => {
  const bytes = Buffer.from(text)
  const reader = new StreamReader()
  reader.take(bytes.subarray(0, at), 1)
  if (at < bytes.length) reader.take(bytes.subarray(at), 2)
  return reader
}

describe("the reader of a stream", () => {
  it.each(Object.entries(forms))("reads %s wherever the network splits it", (_, text) => {
    for (let at = 1; at <= Buffer.byteLength(text); at++) {
      const reader = read(text, at)
      assert.deepStrictEqual([reader.over, reader.problem, reader.arrivals.length], [true, null, 3], `cut at ${at}`)
      assert.deepStrictEqual(reader.usage, { prompt: 4, completion: 3 })
    }
  })

  it("ends with the connection if the answer has no length, after the last event", () => {
    const reader = read(head() + events)
    assert.deepStrictEqual([reader.over, reader.endsWithConnection, reader.keepsConnection, reader.problem], [false, true, false, null])
    assert.isFalse(read(head() + events.slice(0, -20)).endsWithConnection)
  })

  it.each([
    ["http_503", "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}"],
    ["error_event", head(`content-length: ${Buffer.byteLength(dataFrame({ error: {} }) + end)}`) + dataFrame({ error: {} }) + end],
    ["aborted", `${head("transfer-encoding: chunked")}${chunk(dataFrame({ choices: [{ text: "", finish_reason: "abort" }] }) + end)}0\r\n\r\n`],
    ["unreadable", `${head("transfer-encoding: chunked")}${chunk(dataFrame("{") + end)}0\r\n\r\n`],
    ["unreadable", `${head("transfer-encoding: chunked")}zz\r\n`],
    ["no_done", `${head("transfer-encoding: chunked")}${chunk(piece("x"))}0\r\n\r\n`],
    ["no_finish_reason", `${head("transfer-encoding: chunked")}${chunk(piece("x") + dataFrame(streamEnd))}0\r\n\r\n`],
    [
      "no_usage",
      `${head("transfer-encoding: chunked")}${chunk(dataFrame({ choices: [{ text: "x", finish_reason: "stop" }] }) + dataFrame(streamEnd))}0\r\n\r\n`
    ]
  ])("reports %s for an invalid answer", (problem, text) => {
    const reader = read(text)
    assert.deepStrictEqual([reader.over, reader.problem], [true, problem])
  })
})

it.live("an interrupted benchmark leaves no request in the engine", () =>
  Effect.gen(function* () {
    const connected = yield* Deferred.make<Socket>()
    const server = createServer((socket) => {
      socket.on("error", () => {})
      socket.once("data", () => Deferred.doneUnsafe(connected, Effect.succeed(socket)))
    })
    const { url } = yield* listenLocally(server)
    const key = {
      commit: "c",
      engine_version: "e",
      engine_digest: null,
      flags_sha256: "f",
      gpu_pool: "card",
      gpu_count: 1,
      tensor_parallel: 1,
      driver: null
    }
    const benchmarked = { subject: { servedName: "m", vocabSize: 1_000 }, url, key, hostClass: "h", simulated: true }
    const benchmark = yield* Effect.forkChild(runBenchmark(benchmarked, workload(1, 1_024, null, {})))
    const socket = yield* Deferred.await(connected)
    const closed = Effect.callback<void>((resume) => {
      if (socket.destroyed) return resume(Effect.void)
      socket.once("close", () => resume(Effect.void))
    })
    yield* Fiber.interrupt(benchmark)
    yield* closed
  }).pipe(Effect.scoped)
)
