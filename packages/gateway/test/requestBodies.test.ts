import { createServer as createHttpServer } from "node:http"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EngineClient } from "../src/EngineClient.ts"
import { GatewayConfig } from "../src/GatewayConfig.ts"
import { RequestAbort } from "../src/RequestAbort.ts"
import { readWhole } from "../src/readWhole.ts"
import { chunk, makeEngine, opening, streams } from "./fakeEngine.ts"
import { chatStream, makeStage, send, soon } from "./stage.ts"

const provided = Effect.provide(EngineClient.layer.pipe(Layer.provide(GatewayConfig.layer)))

describe("a request to an engine", () => {
  it.live("arrives complete, however large it is", () =>
    Effect.gen(function* () {
      const large = "wörld ".repeat(200_000)
      const engine = yield* Effect.acquireRelease(
        Effect.sync(() => createHttpServer((request, response) => request.pipe(response)).listen(0, "127.0.0.1")),
        (server) => Effect.sync(() => server.close())
      )
      yield* soon(() => engine.listening)
      const address = engine.address()
      const { call } = yield* EngineClient
      const signal = new RequestAbort()
      const url = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
      const answer = yield* call({ url, path: "/v1/completions", method: "POST", body: () => large, requestId: "r", timeout: 5_000, signal })
      const body = yield* readWhole(answer, 10_000_000, 5_000, signal)
      assert.isTrue(typeof body !== "string" && body.toString("utf8") === large)
    }).pipe(Effect.scoped, provided)
  )
})

describe("a stream in progress", () => {
  it.live("keeps no memory of its request", () =>
    Effect.gen(function* () {
      setFlagsFromString("--expose-gc")
      const collect: () => void = runInNewContext("gc")
      const count = 4
      let open = 0
      const engine = yield* Effect.acquireRelease(
        Effect.sync(() =>
          createHttpServer((request, response) => {
            if (request.method === "GET") return response.writeHead(404).end()
            return request.resume().once("end", () => {
              open++
              response.writeHead(200, { "content-type": "text/event-stream" }).write(opening + chunk("a"))
            })
          }).listen(0, "127.0.0.1")
        ),
        (server) => Effect.sync(() => server.close() && server.closeAllConnections())
      )
      yield* soon(() => engine.listening)
      const address = engine.address()
      const { address: gateway } = yield* makeStage([`http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`])
      const content = "a word ".repeat(100_000)
      const openOne = Effect.gen(function* () {
        const received = yield* send(gateway, { body: { ...chatStream, messages: [{ role: "user", content }] } })
        yield* soon(() => received.text().includes(chunk("a")))
        return received
      })
      const heldBytes = () => {
        collect()
        const { external, heapUsed } = process.memoryUsage()
        return external + heapUsed
      }
      const first = yield* openOne
      const before = heldBytes()
      const streams = yield* Effect.replicateEffect(openOne, count - 1)
      // Memory is counted after a delay.
      yield* soon(() => heldBytes() - before < ((count - 1) * content.length) / 10)
      for (const { request } of [first, ...streams]) request.destroy()
      assert.strictEqual(open, count)
    }).pipe(Effect.scoped)
  )
})

describe("a request that waits for an engine", () => {
  it.live("keeps its text and the engine's body, and not the parsed form", () =>
    Effect.gen(function* () {
      setFlagsFromString("--expose-gc")
      const collect: () => void = runInNewContext("gc")
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([])
      world.route = { ...world.route, mayIdle: true }
      // The gateway accepts this member without sending it to the engine.
      const body = JSON.stringify({ ...chatStream, prompt_cache_options: { any: Array.from({ length: 30_000 }, () => ({})) } })
      const holdOne = Effect.gen(function* () {
        const { used } = world
        const received = yield* send(address, { body })
        yield* soon(() => world.used > used)
        return received
      })
      const heldBytes = () => {
        collect()
        const { external, heapUsed } = process.memoryUsage()
        return external + heapUsed
      }
      const first = yield* holdOne
      const before = heldBytes()
      const held = yield* Effect.replicateEffect(holdOne, 4)
      // Memory is counted after a delay. The parsed form of each body would take twenty times its text.
      yield* soon(() => heldBytes() - before < 4 * 5 * body.length)
      // The request goes to another revision, so it is checked again.
      const { revisionId } = (yield* makeStage([])).world.route
      world.route = { ...world.route, revisionId, endpoints: [{ url: engine.url, pod: "pod" }] }
      yield* soon(() => [first, ...held].every(({ ended }) => ended === "end"))
      assert.deepStrictEqual(
        engine.calls.map((call) => JSON.parse(call.body).messages),
        Array.from({ length: 5 }, () => chatStream.messages)
      )
    }).pipe(Effect.scoped)
  )
})
