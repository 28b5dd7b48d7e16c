import { connect, type Socket } from "node:net"
import { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeCachingEngine } from "./cachingEngine.ts"
import { framesOf, misbehaviours } from "./fakeAnswers.ts"
import { answers, type Call, makeEngine, openStream, type Script, wholeAnswer } from "./fakeEngine.ts"
import { chat, endOf, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const text = "one two three four five six seven eight nine ten"
/** Thirteen tokens for the caching engine: ten words, the member's role and names. */
const prompt = { model: "acme/tiny", messages: [{ role: "user", content: text }], max_completion_tokens: 7 }
const response = { model: "acme/tiny", input: text, stream: true }
const large = { answer: Buffer.alloc(17 * 1024 * 1024, "a"), frame: `data: ${"a".repeat(5 * 1024 * 1024)}` }

/** Makes the measured speed of the model so high that the limit of each request applies to its estimate. */
const makeFast = Effect.fnUntraced(function* (engine: { script: Script }, { address, world }: Effect.Success<ReturnType<typeof makeStage>>) {
  const usage = { prompt_tokens: 1, completion_tokens: 1_000_000_000, total_tokens: 1_000_000_001 }
  engine.script = answers(JSON.stringify({ ...JSON.parse(wholeAnswer("a")), usage }))
  yield* fetched(address, { body: chat })
  world.recorded.splice(0)
})

/** An address whose connections are never opened: its process does not accept them, and its queue is full. */
const busyAddress = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
    const code = `
      const { parentPort } = require("node:worker_threads")
      const server = require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
        parentPort.postMessage(server.address().port)
        setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))
      })`
    const worker = new Worker(code, { eval: true })
    const sockets: Array<Socket> = []
    const close = () => {
      for (const socket of sockets) socket.destroy()
      void worker.terminate()
    }
    worker.once("message", (port) => {
      /** Connects until a connection stays pending while others have been opened. */
      const fill = () => {
        const socket = connect(port, "127.0.0.1")
        sockets.push(socket)
        const pending = setTimeout(() => resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close })), 300)
        socket.on("error", () => {})
        socket.once("connect", () => {
          clearTimeout(pending)
          fill()
        })
      }
      fill()
    })
  }),
  ({ close }) => Effect.sync(close)
).pipe(Effect.map(({ url }) => url))

describe("an answer that is not streamed and is not delivered", () => {
  it.live("because its time ended is charged: its prompt, and the output that the engine wrote in that time", () =>
    Effect.gen(function* () {
      for (const script of [() => {}, ({ response: answer }: Call) => void answer.writeHead(200).write("{")]) {
        const { engine } = yield* makeCachingEngine
        const { address, world } = yield* makeStage([engine.url], { GATEWAY_WHOLE_SECONDS: 2 })
        engine.script = script
        const received = yield* fetched(address, { body: { ...prompt, max_completion_tokens: 1 } })
        const { note, usage } = endOf(world)
        assert.deepStrictEqual([received.status(), outcomes(world)], [504, ["Begin", "End 504 engine_timeout"]])
        assert.deepStrictEqual([usage.input_tokens, usage.output_tokens], [13, 1])
        assert.include(note, "counted with the model's tokenizer, the output is an estimate")
        yield* soon(() => engine.calls[0]?.isCut() === true)
      }
    })
  )

  it.live("because its time ended has no output for the time in which the engine read a long prompt", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_WHOLE_SECONDS: 2 })
      world.route = { ...world.route, maxModelLen: 16_384 }
      const ids = Array.from({ length: 8_000 }, (_, index) => index % 10)
      yield* fetched(address, { path: "/v1/completions", body: { model: "acme/tiny", prompt: ids } })
      assert.deepInclude(endOf(world).usage, { input_tokens: 8_000, output_tokens: 0 })
    })
  )

  it.live("because the engine hangs costs nothing: its token counter stood still", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      let readings = 0
      engine.observed = ({ request, response: answer }) => {
        if (request.url === "/metrics") readings++
        answer.writeHead(200).end("vllm:prompt_tokens_total 7\n")
      }
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_WHOLE_SECONDS: 0.3, GATEWAY_SCRAPE_SECONDS: 0.01 })
      yield* fetched(address, { body: chat })
      world.recorded.splice(0)
      yield* soon(() => readings > 2)
      engine.script = () => {}
      assert.strictEqual((yield* fetched(address, { body: chat })).status(), 504)
      assert.deepInclude(endOf(world).usage, { input_tokens: 0, output_tokens: 0 })
    })
  )

  it.live("because it is too large is charged, stops the engine's work and does not count against the engine", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      const spare = yield* makeCachingEngine
      const stage = yield* makeStage([engine.url, spare.engine.url])
      for (const each of [engine, spare.engine]) yield* makeFast(each, stage)
      const script: Script = (call) => void call.response.writeHead(200, { "content-type": "application/json" }).write(large.answer)
      engine.script = script
      spare.engine.script = script
      for (const each of [engine, spare.engine]) each.calls.splice(0)
      const attempts = 7
      for (let count = 0; count < attempts; count++) {
        const { address, world } = stage
        const received = yield* fetched(address, { body: prompt })
        const { note, usage } = endOf(world)
        assert.deepStrictEqual([received.status(), outcomes(world)], [502, ["Begin", "End 502 engine_failed"]])
        assert.deepStrictEqual([usage.input_tokens, usage.output_tokens], [13, 7])
        assert.include(note, "exceeded 16 MiB before the engine reported its usage")
        world.recorded.splice(0)
      }
      // The prompt selects the engine, which would have been ejected after six failures.
      const counts = [engine.calls.length, spare.engine.calls.length]
      assert.deepStrictEqual(
        counts.toSorted((one, other) => one - other),
        [0, attempts]
      )
      yield* soon(() => [...engine.calls, ...spare.engine.calls].every((call) => call.isCut()))
    })
  )
})

describe("a stream without usage that is not delivered completely", () => {
  const ends: ReadonlyArray<readonly [string, Script, number, string]> = [
    [
      "has too large a frame",
      (call) => void openStream(call).write(framesOf("/v1/responses", ["a", "b", "c"]).slice(0, 7).join("") + large.frame),
      502,
      "4 MiB"
    ],
    ["becomes silent", misbehaviours.hangs(7, ["a", "b", "c"]), 504, "The engine stopped sending"],
    ["breaks off", misbehaviours.dies(7, ["a", "b", "c"]), 502, "broke off"],
    ["ends with an error of the engine", misbehaviours.fails(7, ["a", "b", "c"]), 502, "The engine failed"]
  ]
  for (const [promise, script, status, reason] of ends) {
    it.live(`because it ${promise} is charged: its prompt, and the output that the engine sent`, () =>
      Effect.gen(function* () {
        const { engine } = yield* makeCachingEngine
        engine.script = script
        const { address, world } = yield* makeStage([engine.url], status === 504 ? { GATEWAY_SILENCE_SECONDS: 0.2 } : {})
        yield* fetched(address, { path: "/v1/responses", body: response })
        const { note, statusCode, usage } = endOf(world)
        assert.deepStrictEqual([statusCode, usage.input_tokens, usage.output_tokens], [status, 10, 3])
        assert.include(note, reason)
        assert.include(note, "counted with the model's tokenizer, the output counts the received tokens")
        yield* soon(() => engine.calls[0]?.response.destroyed === true)
      })
    )
  }

  it.live("because its first frame is too large is charged, goes to no other engine and does not count against the engine", () =>
    Effect.gen(function* () {
      const engines = [yield* makeCachingEngine, yield* makeCachingEngine].map(({ engine }) => engine)
      for (const engine of engines) engine.script = (call) => void openStream(call).write(large.frame)
      const { address, world } = yield* makeStage(engines.map(({ url }) => url))
      const attempts = 7
      for (let count = 0; count < attempts; count++) {
        yield* fetched(address, { path: "/v1/responses", body: response })
        assert.deepStrictEqual([outcomes(world), endOf(world).usage.input_tokens], [["Begin", "End 502 engine_failed"], 10])
        world.recorded.splice(0)
      }
      assert.deepStrictEqual(
        engines.map(({ calls }) => calls.length).toSorted((one, other) => one - other),
        [0, attempts]
      )
      yield* soon(() => engines.every(({ calls }) => calls.every((call) => call.isCut())))
    })
  )
})

it.live("a caller that leaves before an engine got the request pays nothing", () =>
  Effect.gen(function* () {
    const url = yield* busyAddress
    for (const stream of [false, true]) {
      const { address, world } = yield* makeStage([url], { GATEWAY_CONNECT_SECONDS: 60, GATEWAY_ABANDONED_SECONDS: 0.05 })
      const received = yield* send(address, { body: { ...prompt, stream } })
      yield* soon(() => outcomes(world).length === 1)
      received.request.destroy()
      yield* soon(() => outcomes(world).length === 2)
      const { note, statusCode, usage } = endOf(world)
      assert.deepStrictEqual([statusCode, usage.input_tokens, usage.output_tokens], [499, 0, 0])
      assert.include(note, "No engine got the request.")
    }
  })
)
