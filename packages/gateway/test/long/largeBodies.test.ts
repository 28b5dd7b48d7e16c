import { assert, describe, it } from "@effect/vitest"
import { OrgId } from "@seatrial/domain"
import { Effect, Fiber, Schema } from "effect"
import { RequestAbort } from "../../src/RequestAbort.ts"
import { LargeBodyLanes, LargeBodyOptions } from "../../src/vocabulary/LargeBodies.ts"
import { decodeAnswer, makeLargeBodyReader } from "../../src/vocabulary/largeBody.ts"
import { answers, chunk, done, finish, makeEngine, opening, openStream, usageFrame, wholeAnswer } from "../fakeEngine.ts"
import { dataUrl, padded, png } from "../pictures.ts"
import { chat, chatStream, fetched, makeStage, outcomes, send, soon } from "../stage.ts"
import { seeing, targetWith } from "../vocabularyTargets.ts"

const content = "é".repeat(700_000)
const large = { ...chat, messages: [{ role: "user", content }], seed: 5, user: "u" }

describe("a body of more than 64 KiB", () => {
  it.live("is checked like all others, in a separate process, and arrives complete", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      const text = JSON.stringify(large).replace('"seed":5', '"seed":9223372036854775807')
      const received = yield* fetched(address, { body: text })
      assert.strictEqual(received.status(), 200)
      const sent = engine.calls[0]?.body ?? ""
      assert.include(sent, '"seed":9223372036854775807')
      assert.notInclude(sent, '"user":"u"')
      assert.deepStrictEqual(JSON.parse(sent).messages, large.messages)

      const refusals: ReadonlyArray<readonly [body: string | Buffer, status: number, code: string, param: string | null]> = [
        [JSON.stringify({ ...large, n: 99 }), 400, "invalid_parameter", "n"],
        [JSON.stringify({ ...large, stream: 7 }).replace('"stream":7', '"stream":12345678901234567890'), 400, "invalid_parameter", "stream"],
        [JSON.stringify({ ...large, ["x".repeat(2_000_000)]: 1 }), 400, "unknown_parameter", "x".repeat(128)],
        [
          JSON.stringify({ ...large, messages: [...large.messages, { role: "user", content: [{ type: "text", text: "a", x: 1 }] }] }),
          400,
          "unknown_parameter",
          "messages[1].content[0].x"
        ],
        [JSON.stringify({ ...large, model: "acme/other" }), 404, "model_not_found", "model"],
        [JSON.stringify(large).slice(0, -1), 400, "invalid_body", null],
        [Buffer.from(JSON.stringify(large), "latin1"), 400, "invalid_body", null]
      ]
      for (const [body, status, code, param] of refusals) {
        const refused = yield* fetched(address, { body })
        const { error } = JSON.parse(refused.text())
        assert.deepStrictEqual([refused.status(), error.code, error.param], [status, code, param])
      }
      assert.strictEqual(engine.calls.length, 1)
      assert.strictEqual(outcomes(world).length, 2 + refusals.length)
    })
  )

  it.live("that is refused starts no engine and keeps none running", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([])
      world.route = { ...world.route, mayIdle: true }
      for (const body of [
        { ...large, n: 99 },
        { ...chat, n: 99 }
      ])
        assert.strictEqual((yield* fetched(address, { body })).status(), 400)
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      world.route = { ...world.route, endpoints: [{ url: engine.url, pod: "pod" }] }
      for (const body of [
        { ...large, n: 99 },
        { ...chat, n: 99 }
      ])
        assert.strictEqual((yield* fetched(address, { body })).status(), 400)
      assert.strictEqual(world.used, 0)
      // When it arrived and when it ended.
      assert.strictEqual((yield* fetched(address, { body: large })).status(), 200)
      yield* soon(() => world.used === 2)
    })
  )

  const image = (url: string) => ({ type: "image_url", image_url: { url } })
  const withImages = (urls: ReadonlyArray<string>, text = "a") => ({
    ...chat,
    messages: [{ role: "user", content: [{ type: "text", text }, ...urls.map(image)] }]
  })

  it.live("reaches the engine with its images, and is refused if it has too many", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, capabilities: seeing }
      const urls = [dataUrl(padded(png(8, 8), 100_000)), dataUrl(padded(png(9, 9), 100_001))]
      for (const text of ["a", "é"]) {
        const body = withImages(urls, text)
        assert.strictEqual((yield* fetched(address, { body })).status(), 200)
        assert.deepStrictEqual(JSON.parse(engine.calls.at(-1)?.body ?? "").messages, body.messages)
      }
      const refused = JSON.parse((yield* fetched(address, { body: withImages([...urls, dataUrl(png(8, 8))]) })).text()).error
      assert.deepStrictEqual([refused.code, refused.param], ["too_many_images", "messages[0].content[3].image_url.url"])
      assert.strictEqual(engine.calls.length, 2)
    })
  )

  it("gives the gateway no more than 64 KiB to parse, whatever it contains", () => {
    const bodies: ReadonlyArray<readonly [what: string, body: object]> = [
      ["long images", withImages([`data:image/png;base64,${"A".repeat(4_000_000)}`, `https://${"é".repeat(1_000_000)}`])],
      ["many images", withImages(Array.from({ length: 45_000 }, () => "https://example.com/"))],
      ["a long cache key", { ...chat, prompt_cache_key: "k".repeat(1_000_000) }],
      ["a long name", { ...chat, ["é".repeat(1_000_000)]: 1 }],
      ["a long text", { ...chat, messages: [{ role: "user", content: "\u0000".repeat(1_000_000) }] }]
    ]
    for (const [what, body] of bodies)
      for (const task of [{ _tag: "Parse" }, { _tag: "Check", endpoint: "/v1/chat/completions", target: targetWith({ capabilities: seeing }) }] as const) {
        const { head } = makeLargeBodyReader()({ task, isHeld: false }, Buffer.from(JSON.stringify(body)))
        assert.isAtMost(Buffer.byteLength(head), 64 * 1024, what)
        assert.include(["Parsed", "Checked", "Refused"], decodeAnswer(head)._tag)
      }
    assert.throws(() => decodeAnswer(`{"_tag":"Parsed","body":{"model":"m","members":{}}${" ".repeat(64 * 1024)}}`))
  })

  const orgOf = (digit: number) => Schema.decodeSync(OrgId)(`org_${"0".repeat(25)}${digit}`)
  const opened = (options: ConstructorParameters<typeof LargeBodyLanes>[0] = {}) =>
    Effect.acquireRelease(
      Effect.sync(() => new LargeBodyLanes(options)),
      (bodies) => Effect.sync(() => bodies.close())
    )
  const bytesOf = (model: string) => Buffer.from(JSON.stringify({ model, messages: [] }))

  it.live("waits for the body that is being parsed only, however many of another organization wait, and not for disconnected callers", () =>
    Effect.gen(function* () {
      const bodies = yield* opened()
      const ended: Array<string> = []
      const read = (model: string, org: number, requestAbort = new RequestAbort()) =>
        bodies
          .read(bytesOf(model), orgOf(org), requestAbort)
          .pipe(
            Effect.matchCause({ onSuccess: () => ended.push(model), onFailure: () => ended.push(`${model} left`) }),
            Effect.forkChild({ startImmediately: true })
          )
      const requestAbort = new RequestAbort()
      const all = yield* Effect.forEach([1, 2, 3, 4], (which) => read(`a${which}`, 1, which === 3 ? requestAbort : new RequestAbort()))
      const other = yield* read("b", 2)
      requestAbort.abort("gone")
      yield* Effect.forEach([...all, other], Fiber.join)
      assert.deepStrictEqual(ended, ["a3 left", "a1", "b", "a2", "a4"])
    })
  )

  const outcomesOf = (bodies: LargeBodyLanes, all: ReadonlyArray<Buffer>) =>
    Effect.forEach(
      all,
      (bytes, which) =>
        Effect.match(bodies.read(bytes, orgOf(which), new RequestAbort()), {
          onSuccess: ({ model }) => model,
          onFailure: ({ code, status }) => `${status} ${code}`
        }),
      { concurrency: "unbounded" }
    )

  it.live("is 503 if its process ends twice; all others are read by new processes", () =>
    Effect.gen(function* () {
      const bodies = yield* opened({ program: new URL("../endingProgram.ts", import.meta.url) })
      assert.deepStrictEqual(yield* outcomesOf(bodies, ["a", "end always", "b", "end once", "c"].map(bytesOf)), ["a", "503 unavailable", "b", "end once", "c"])
    })
  )

  it.live("is parsed once for reading and checking", () =>
    Effect.gen(function* () {
      const bodies = yield* opened({ program: new URL("../endingProgram.ts", import.meta.url) })
      const both = (which: number) =>
        Effect.flatMap(bodies.read(Buffer.from(JSON.stringify({ ...chat, seed: which })), orgOf(which), new RequestAbort()), (body) =>
          body.check("/v1/chat/completions", targetWith())
        )
      const checked = yield* Effect.forEach([1, 2, 3], both, { concurrency: "unbounded" })
      assert.deepStrictEqual(
        checked.map(({ engineBody }) => JSON.parse(engineBody).seed),
        [1, 2, 3]
      )
    })
  )

  it.live("that takes too long is 503, and all others are read by a new process", () =>
    Effect.gen(function* () {
      const bodies = yield* opened({ program: new URL("../endingProgram.ts", import.meta.url), patienceMillis: 3_000 })
      assert.deepStrictEqual(yield* outcomesOf(bodies, ["a", "hang", "b"].map(bytesOf)), ["a", "503 unavailable", "b"])
    })
  )

  // Within the limits of the scan, but larger than a small heap.
  const strings = Array.from({ length: 900_000 }, (_, index) => `"${index.toString(36).padStart(12, "x")}"`)
  const costly = Buffer.from(`{"model":"costly","a":[${strings.join(",")}]}`)

  it.live("that needs more memory than its process has is 400, while a stream of the same gateway goes on", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine((call) => openStream(call).write(opening))
      const options = yield* LargeBodyOptions
      const { address } = yield* makeStage([engine.url]).pipe(Effect.provideService(LargeBodyOptions, { ...options, heapMegabytes: 32 }))
      const stream = yield* send(address, { body: chatStream })
      yield* soon(() => stream.text() !== "")
      const answer = engine.calls[0]?.response
      const refused = yield* send(address, { body: costly })
      let sent = 0
      // The engine sends a frame whenever the caller has received the last one.
      while (refused.ended === undefined) {
        answer?.write(chunk(`token ${sent}`))
        yield* soon(() => stream.text().includes(`"token ${sent}"`))
        sent++
      }
      assert.deepStrictEqual([refused.status(), JSON.parse(refused.text()).error.code, stream.ended], [400, "invalid_body", undefined])
      assert.isAbove(sent, 1)
      answer?.end(finish("stop") + usageFrame(sent) + done)
      yield* soon(() => stream.ended !== undefined)
      assert.strictEqual(stream.ended, "end")
      for (let index = 0; index < sent; index++) assert.include(stream.text(), `"token ${index}"`)
      assert.include(stream.text(), "[DONE]")
    })
  )

  it.live("that needs more memory than its process has is 400; all others are read by new processes", () =>
    Effect.gen(function* () {
      const bodies = yield* opened({ heapMegabytes: 32 })
      assert.deepStrictEqual(yield* outcomesOf(bodies, [bytesOf("a"), costly, bytesOf("b"), costly, bytesOf("c")]), [
        "a",
        "400 invalid_body",
        "b",
        "400 invalid_body",
        "c"
      ])
    })
  )
})
