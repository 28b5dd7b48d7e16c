import { createHmac } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { Deferred, Effect, Fiber, Schema } from "effect"
import type { AnswerFormat } from "../../src/parseAnswer.ts"
import { type AbortReason, RequestAbort } from "../../src/RequestAbort.ts"
import { LargeBodyLanes, LargeBodyOptions } from "../../src/vocabulary/LargeBodies.ts"
import { decodeAnswer, makeLargeBodyReader } from "../../src/vocabulary/largeBody.ts"
import { makeCachingEngine } from "../cachingEngine.ts"
import { wholeOf } from "../fakeAnswers.ts"
import { answers, chunk, done, finish, makeEngine, opening, openStream, type Script, usageFrame, wholeAnswer } from "../fakeEngine.ts"
import { chat, chatStream, endOf, fetched, makeStage, outcomes, send, soon } from "../stage.ts"

const bodies: Readonly<Record<string, object>> = {
  "/v1/chat/completions": chat,
  "/v1/completions": { model: "acme/tiny", prompt: "hi" },
  "/v1/responses": { model: "acme/tiny", input: "hi" },
  "/v1/messages": { ...chat, max_tokens: 8 },
  "/v1/messages/count_tokens": chat
}

/** White space that JSON allows at the end of a text, and that makes a text large. */
const padding = " ".repeat(70_000)

/** Answers with everything that the gateway reads in them or changes. */
const variants = (path: string): ReadonlyArray<string | Buffer> => {
  const good = wholeOf(path, 'wörld 🌊 \\"model\\":\\"x\\"')
  return [
    good,
    good.replace('"acme/tiny"', '"other"'),
    good.replace('"stop"', '"repetition"'),
    good.replace('"stop"', '"abort"').replace('"completed"', '"failed"').replace('"end_turn"', '"paused"'),
    good.replace('"stop"', "null").replace('"completed"', '"in_progress"').replace('"end_turn"', "null"),
    good.replace('"role":"assistant"', '"role":"assistant","reasoning_content":"hm \\" so"'),
    good.replace(/"usage":\{.*?\}(?=\})/, '"usage":null'),
    good.replace('"cached_tokens":4', '"cached_tokens":40'),
    Buffer.from(good.replace("🌊", "é"), "latin1"),
    good.slice(0, -1),
    "secret",
    "[]",
    JSON.stringify({ error: { message: "secret", code: 503 } }),
    JSON.stringify({ error: { message: "the prompt was: secret", param: "messages", code: 400 } }),
    JSON.stringify({ object: "error", message: "Input length (3000 tokens) exceeds the maximum allowed length (2047 tokens)", code: 400 }),
    JSON.stringify({ error: { message: "maximum context length is 8, and the prompt has 3000 tokens", code: "400" } })
  ]
}

/** A gateway whose answers on a path are compared: what the caller gets, and what is recorded. */
const makeExchange = Effect.fnUntraced(function* (path: string) {
  const engine = yield* makeEngine(() => {})
  const { address, world } = yield* makeStage([engine.url])
  world.route = { ...world.route, runtime: "vllm" }
  return Effect.fnUntraced(function* (answer: string | Buffer) {
    engine.script = ({ response }) => response.writeHead(200, { "content-type": "application/json" }).end(answer)
    const received = yield* fetched(address, { path, body: bodies[path] })
    const records = world.recorded.splice(0).map(({ _tag, row }) => ({ ...row, _tag, id: "", latencyMs: 0 }))
    const id = String(received.headers()["x-request-id"])
    return { status: received.status(), text: received.text().trimEnd().replaceAll(id, ""), records }
  })
})

describe("an answer of more than 64 KiB that is not streamed", () => {
  for (const path of Object.keys(bodies)) {
    it.live(`has the same outcome on ${path} as a smaller one, whatever the engine wrote`, () =>
      Effect.gen(function* () {
        const exchange = yield* makeExchange(path)
        for (const answer of variants(path)) {
          const large = Buffer.concat([Buffer.from(answer), Buffer.from(padding)])
          assert.deepStrictEqual(yield* exchange(large), yield* exchange(answer), String(answer))
        }
      })
    )
  }

  it.live("arrives complete on each path, with a digest of its bytes", () =>
    Effect.gen(function* () {
      const text = 'é🌊 \n"'.repeat(200_000)
      for (const [path, body] of Object.entries(bodies).filter(([path]) => !path.endsWith("count_tokens"))) {
        const answer = wholeOf(path, text)
        const engine = yield* makeEngine(answers(answer.replace('"acme/tiny"', '"other"')))
        const { address, world } = yield* makeStage([engine.url])
        world.route = { ...world.route, runtime: "vllm" }
        const received = yield* fetched(address, { path, body, headers: { "seatrial-receipt-digest": "hmac-sha-256" } })
        assert.strictEqual(received.status(), 200)
        assert.isTrue(received.text() === answer, path)
        const salt = Buffer.from(String(received.headers()["seatrial-receipt-salt"]), "base64url")
        assert.strictEqual(endOf(world).receipt.digests?.answer, createHmac("sha256", salt).update(received.bytes).digest("base64url"))
      }
    })
  )

  const prompt = { model: "acme/tiny", messages: [{ role: "user", content: "one two three four five six seven eight nine ten" }] }
  const endingProgram = new URL("../endingProgram.ts", import.meta.url)

  it.live("is parsed in a separate process: if that ends twice, the answer is 503 and charged, and a new process parses the next one", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      const options = yield* LargeBodyOptions
      const { address, world } = yield* makeStage([engine.url]).pipe(Effect.provideService(LargeBodyOptions, { ...options, program: endingProgram }))
      const answer = (text: string): Script => answers(wholeAnswer(text))
      engine.script = answer("end always")
      assert.strictEqual((yield* fetched(address, { body: prompt })).status(), 200)
      world.recorded.splice(0)
      engine.script = answer(`end always${padding}`)
      assert.strictEqual((yield* fetched(address, { body: prompt })).status(), 503)
      const { note, usage } = endOf(world)
      assert.deepStrictEqual([outcomes(world), usage.input_tokens], [["Begin", "End 503 unavailable"], 13])
      assert.include(note, "The process that reads large answers ended before the engine reported its usage")
      world.recorded.splice(0)
      engine.script = answer(padding)
      assert.strictEqual((yield* fetched(address, { body: prompt })).text(), wholeAnswer(padding))
      assert.deepInclude(endOf(world).usage, { input_tokens: 10, output_tokens: 3 })
    })
  )

  it.live("that needs more memory than its process has is 502 and charged, while a stream of the same gateway goes on", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      const costly = JSON.stringify({ ...JSON.parse(wholeAnswer("a")), more: Array.from({ length: 900_000 }, (_, index) => `x${index}`) })
      engine.script = (call) => (call.body.includes('"stream":true') ? openStream(call).write(opening) : answers(costly)(call))
      const options = yield* LargeBodyOptions
      const { address, world } = yield* makeStage([engine.url]).pipe(Effect.provideService(LargeBodyOptions, { ...options, heapMegabytes: 32 }))
      const stream = yield* send(address, { body: chatStream })
      yield* soon(() => stream.text() !== "")
      const frames = engine.calls[0]?.response
      world.recorded.splice(0)
      const failed = yield* fetched(address, { body: prompt })
      assert.deepStrictEqual([failed.status(), endOf(world).usage.input_tokens], [502, 13])
      assert.include(endOf(world).note, "ran out of memory before the engine reported its usage")
      frames?.end(chunk("b") + finish("stop") + usageFrame(1) + done)
      yield* soon(() => stream.ended !== undefined)
      assert.include(stream.text(), "[DONE]")
    })
  )

  it.live("uses its organization's memory until the request has ended; one that does not fit gets 429 and is charged", () =>
    Effect.gen(function* () {
      const { engine } = yield* makeCachingEngine
      const { address, world } = yield* makeStage([engine.url], { GATEWAY_BODIES_BYTES: 1_048_576 })
      engine.script = answers(wholeAnswer("a".repeat(200_000)))
      const committed = yield* Deferred.make<void>()
      world.onEnd = Deferred.await(committed)
      const fits = [yield* send(address, { body: prompt }), yield* send(address, { body: prompt })]
      yield* soon(() => outcomes(world).filter((outcome) => outcome === "End 200").length === 2)
      world.recorded.splice(0)
      const tooMany = yield* send(address, { body: prompt })
      yield* soon(() => outcomes(world).length === 2)
      const { note, usage } = endOf(world)
      assert.deepStrictEqual([outcomes(world), usage.input_tokens], [["Begin", "End 429 org_concurrency_limited"], 13])
      assert.include(note, "The gateway had no memory for the answer")
      // Answers up to 64 KiB need none.
      world.recorded.splice(0)
      engine.script = answers(wholeAnswer("a".repeat(60_000)))
      const small = yield* send(address, { body: prompt })
      yield* soon(() => outcomes(world).includes("End 200"))
      yield* Deferred.succeed(committed, undefined)
      yield* soon(() => [...fits, tooMany, small].every(({ ended }) => ended === "end"))
      assert.deepStrictEqual(
        [...fits, tooMany, small].map((received) => received.status()),
        [200, 200, 429, 200]
      )
      engine.script = answers(wholeAnswer("a".repeat(200_000)))
      assert.strictEqual((yield* fetched(address, { body: prompt })).status(), 200)
    })
  )

  const format: AnswerFormat = { endpoint: "/v1/chat/completions", model: "acme/tiny", adapted: false, runtime: "vllm" }
  const orgOf = (digit: number) => Schema.decodeSync(OrgId)(`org_${"0".repeat(25)}${digit}`)
  const opened = (options: ConstructorParameters<typeof LargeBodyLanes>[0] = {}) =>
    Effect.acquireRelease(
      Effect.sync(() => new LargeBodyLanes(options)),
      (lanes) => Effect.sync(() => lanes.close())
    )
  const bytes = Buffer.from(wholeAnswer("a"))

  it.live("lets bodies and answers of other organizations be parsed after one of its own", () =>
    Effect.gen(function* () {
      const lanes = yield* opened()
      const ended: Array<string> = []
      const ends = (name: string) => Effect.onExit(() => Effect.sync(() => void ended.push(name)))
      const answer = (name: string, org: number) =>
        lanes.readAnswer(bytes, format, { orgId: orgOf(org), requestAbort: new RequestAbort() }).pipe(ends(name), Effect.forkChild({ startImmediately: true }))
      const own = yield* Effect.forEach(["a1", "a2", "a3", "a4"], (name) => answer(name, 1))
      const others = [
        yield* lanes.read(Buffer.from(JSON.stringify(chat)), orgOf(2), new RequestAbort()).pipe(ends("b"), Effect.forkChild({ startImmediately: true })),
        yield* answer("c", 3)
      ]
      yield* Effect.forEach([...own, ...others], (fiber) => Fiber.join<unknown, unknown>(fiber))
      assert.deepStrictEqual(ended, ["a1", "b", "c", "a2", "a3", "a4"])
    })
  )

  it.live("is parsed also if its caller leaves, whose tokens are counted, but not if the gateway stops", () =>
    Effect.gen(function* () {
      const lanes = yield* opened()
      const parsed = (reason: AbortReason) =>
        Effect.gen(function* () {
          const requestAbort = new RequestAbort()
          const fiber = yield* Effect.forkChild(Effect.result(lanes.readAnswer(bytes, format, { orgId: orgOf(1), requestAbort })), { startImmediately: true })
          requestAbort.abort(reason)
          const result = yield* Fiber.join(fiber)
          return result._tag === "Failure" ? result.failure.reason : result.success._tag
        })
      const ends = yield* Effect.forEach(["gone", "revoked", "stopped", "unrecorded"] as const, parsed)
      assert.deepStrictEqual(ends, ["Answer", "Answer", "aborted", "aborted"])
    })
  )

  it("gives the gateway no more than 64 KiB to parse, whatever it contains", () => {
    const long = "\u0000".repeat(1_000_000)
    const answer = JSON.parse(wholeAnswer(long))
    for (const text of [
      JSON.stringify(answer),
      JSON.stringify({ ...answer, usage: { ...answer.usage, more: long } }),
      JSON.stringify({ error: { message: long, param: long, code: long } }),
      long
    ]) {
      const { head } = makeLargeBodyReader()({ task: { _tag: "ParseAnswer", format }, isHeld: false }, Buffer.from(text))
      assert.isAtMost(Buffer.byteLength(head), 64 * 1024)
      assert.include(["ParsedAnswer", "EngineError"], decodeAnswer(head)._tag)
    }
  })
})
