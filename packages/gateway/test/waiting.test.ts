import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { misbehaviours, speaks } from "./fakeAnswers.ts"
import { answers, type Call, chunk, done, errorFrame, finish, makeEngine, opening, openStream, streams, wholeAnswer, withRole } from "./fakeEngine.ts"
import { chat, chatStream, fetched, makeStage, outcomes, type SendOptions, send, soon } from "./stage.ts"

const about = (content: string) => ({ ...chatStream, messages: [{ role: "user", content }] })
const many = <A>(count: number, value: A): ReadonlyArray<A> => Array.from({ length: count }, () => value)
const complete = (call: Call) => streams(["a"])(call)

describe("a request while all engines are full", () => {
  /** An engine that is full with five requests, and callers that wait. */
  const makeFull = Effect.fnUntraced(function* (waiting: number, settings: Readonly<Record<string, number>> = {}) {
    const engine = yield* makeEngine(() => {})
    const { address, world } = yield* makeStage([engine.url], settings)
    world.route = { ...world.route, concurrency: 1 }
    const held = yield* Effect.forEach(many(5, chatStream), (body) => send(address, { body }))
    yield* soon(() => engine.calls.length === 5)
    const queued = yield* Effect.forEach(many(waiting, chatStream), (body) => send(address, { body }))
    return { address, engine, held, queued, world }
  })

  it.live("waits in the gateway until an engine has room or a new engine starts", () =>
    Effect.gen(function* () {
      const { engine, queued, world } = yield* makeFull(3)
      const [first] = engine.calls
      if (first !== undefined) complete(first)
      yield* soon(() => engine.calls.length === 6)
      const other = yield* makeEngine(streams(["b"]))
      world.route = { ...world.route, endpoints: [...world.route.endpoints, { url: other.url, pod: "other" }] }
      yield* soon(() => queued.filter(({ ended }) => ended === "end").length === 2)
      assert.deepStrictEqual([engine.calls.length, other.calls.length], [6, 2])
    })
  )

  it.live("that waits too long, or finds a full queue, is 503 and recorded as refused", () =>
    Effect.gen(function* () {
      const { address, engine, queued, world } = yield* makeFull(20, { GATEWAY_QUEUE_SECONDS: 0.3 })
      yield* soon(() => queued.every(({ request }) => request.socket?.connecting === false))
      const late = yield* fetched(address)
      yield* soon(() => queued.every(({ ended }) => ended === "end"))
      for (const received of [late, ...queued]) assert.deepStrictEqual([received.status(), received.headers()["retry-after"]], [503, "2"])
      assert.deepStrictEqual(
        outcomes(world).filter((outcome) => outcome !== "Begin"),
        // Of identical refusals, twenty per minute are recorded.
        many(20, "Refuse 503 model_overloaded")
      )
      assert.strictEqual(engine.calls.length, 5)
    })
  )

  it.live("never waits longer than its caller announces", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeFull(0)
      const received = yield* fetched(address, { headers: { "x-stainless-timeout": "1" } })
      assert.strictEqual(received.status(), 503)
      assert.include(outcomes(world), "Refuse 503 model_overloaded")
    })
  )

  it.live("whose caller disconnects costs nothing and takes no slot", () =>
    Effect.gen(function* () {
      const { engine, queued, world } = yield* makeFull(2)
      const [leaver, stayer] = queued
      yield* soon(() => queued.every(({ request }) => request.socket?.connecting === false))
      leaver?.request.destroy()
      yield* soon(() => outcomes(world).includes("Refuse 499 client_closed_request"))
      engine.script = streams(["b"])
      const [first] = engine.calls
      if (first !== undefined) complete(first)
      yield* soon(() => stayer?.ended === "end")
      assert.strictEqual(engine.calls.length, 6)
    })
  )
})

describe("a request for a model without an engine", () => {
  it.live("waits without a byte until there is one, and is then served, also with fifty requests", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([])
      // Requests that come after the engine started find a queue with room for all.
      world.route = { ...world.route, mayIdle: true, concurrency: 16 }
      const crowd = yield* Effect.forEach(many(50, chatStream), (body) => send(address, { body }))
      yield* soon(() => world.used >= 50)
      assert.isTrue(crowd.every(({ response }) => response === undefined))
      world.route = { ...world.route, endpoints: [{ url: engine.url, pod: "pod" }] }
      yield* soon(() => crowd.every(({ ended }) => ended === "end"))
      assert.deepStrictEqual([...new Set(crowd.map((received) => received.text()))], [[opening, chunk("a"), finish("stop"), done].join("")])
      assert.deepStrictEqual([outcomes(world).filter((outcome) => outcome === "End 200").length, world.recorded.length], [50, 100])
    })
  )

  it.live("beyond the queue's limit gets a Retry-After from the measured start", () =>
    Effect.gen(function* () {
      const { address, world } = yield* makeStage([], { GATEWAY_COLD_WAITING: 2 })
      world.route = { ...world.route, mayIdle: true, startSeconds: 48 }
      const held = yield* Effect.forEach(many(2, chatStream), (body) => send(address, { body }))
      yield* soon(() => world.used === 2)
      const received = yield* fetched(address, { body: chat })
      assert.strictEqual(received.status(), 503)
      // Less the time since the first request.
      const seconds = Number(received.headers()["retry-after"])
      assert.isTrue(seconds > 30 && seconds <= 48, `${seconds} s`)
      assert.deepStrictEqual(outcomes(world), ["Refuse 503 model_starting"])
      for (const { request } of held) request.destroy()
      yield* soon(() => world.recorded.length === 3)
    })
  )
})

describe("a rollout", () => {
  it.live("lets streams of the old revision end while the new one gets all new requests", () =>
    Effect.gen(function* () {
      const old = yield* makeEngine((call) => openStream(call).write(chunk("a", 1)))
      const fresh = yield* makeEngine(streams(["b"]))
      const { address, world } = yield* makeStage([old.url])
      const received = yield* send(address)
      yield* soon(() => received.text().includes('"content":"a"'))
      const { revisionId } = (yield* makeStage([])).world.route
      world.route = { ...world.route, revisionId, endpoints: [{ url: fresh.url, pod: "fresh" }] }
      assert.isTrue((yield* fetched(address)).text().includes('"content":"b"'))
      old.calls[0]?.response.end(finish("stop") + done)
      yield* soon(() => received.ended === "end")
      assert.strictEqual(received.text(), [withRole(chunk("a")), finish("stop"), done].join(""))
      assert.deepStrictEqual([old.calls.length, fresh.calls.length], [1, 1])
      const revisions = world.recorded.flatMap((entry) => (entry._tag === "Begin" ? [entry.row.revisionId] : []))
      assert.strictEqual(revisions[1], revisionId)
    })
  )
})

/** The head and part of an answer that is not streamed. */
const breaksOff = ({ response }: Call) =>
  void response.writeHead(200, { "content-type": "application/json", "content-length": "1000" }).write("{", () => response.destroy())

describe("of two engines", () => {
  const settings = { GATEWAY_SCRAPE_SECONDS: 0.01, GATEWAY_HEALTH_SECONDS: 0.01 }

  /** Two engines, and the one that these requests prefer. */
  const makeTwo = Effect.fnUntraced(function* (asked: SendOptions = { body: { ...about("hi"), stream: false } }, more: Readonly<Record<string, number>> = {}) {
    const engines = [yield* makeEngine(speaks(["a"])), yield* makeEngine(speaks(["a"]))]
    const { address, world } = yield* makeStage(
      engines.map(({ url }) => url),
      { ...settings, ...more }
    )
    const ask = fetched(address, asked)
    yield* ask
    const home = engines.find(({ calls }) => calls.length === 1)
    const other = engines.find(({ calls }) => calls.length === 0)
    if (home === undefined || other === undefined) return yield* Effect.die("both were asked")
    return { address, ask, home, other, world }
  })
  /** Sends requests until the other engine gets one. */
  const untilTurned = Effect.fnUntraced(function* ({ ask, other }: Effect.Success<ReturnType<typeof makeTwo>>) {
    while (other.calls.length === 0) assert.strictEqual((yield* ask).status(), 200)
  })

  it.live("one that reports that it is full gets no new requests", () =>
    Effect.gen(function* () {
      const two = yield* makeTwo()
      two.home.observed = ({ response }) => response.end('vllm:num_requests_running{engine="0"} 1\nvllm:num_requests_waiting{engine="0"} 6\n')
      yield* untilTurned(two)
    })
  )

  it.live("one that fails its health checks gets no requests, unless it is the last one", () =>
    Effect.gen(function* () {
      const two = yield* makeTwo()
      two.home.observed = ({ response }) => response.writeHead(503).end()
      yield* untilTurned(two)
      two.other.observed = two.home.observed
      const calls = two.home.calls.length
      for (let time = 0; time < 5; time++) assert.strictEqual((yield* two.ask).status(), 200)
      assert.strictEqual(two.home.calls.length, calls)
    })
  )

  const responses = { path: "/v1/responses", body: { model: chat.model, input: "hi", stream: true } }
  for (const [how, broken, asked] of [
    ["with an error status", answers("{}", 500), { body: about("hi") }],
    ["with an error as the first frame", (call: Call) => openStream(call).end(errorFrame(500)), { body: about("hi") }],
    ["after a start without content", misbehaviours.fails(2, ["b"]), responses],
    ["by breaking off after such a start", misbehaviours.dies(2, ["b"]), responses],
    ["with incomplete answers", breaksOff, { body: { ...about("hi"), stream: false } }],
    [
      "by answers that are not finished",
      answers(wholeAnswer("b").replace('"finish_reason":"stop"', '"finish_reason":null')),
      { body: { ...about("hi"), stream: false } }
    ]
  ] as const) {
    it.live(`one that fails every request ${how} gets no requests, although it is healthy`, () =>
      Effect.gen(function* () {
        const { ask, home, other } = yield* makeTwo(asked)
        home.script = broken
        other.script = speaks(["b"])
        // One request was answered before.
        while (other.calls.length === 0 && home.calls.length < 20) yield* ask
        assert.isAtMost(home.calls.length, 1 + 6)
        for (let time = 0; time < 5; time++) {
          const { status, text } = yield* ask
          assert.deepStrictEqual([status(), text().includes('"b"')], [200, true])
        }
      })
    )
  }

  it.live("one that hangs with work gets no requests, although it is healthy", () =>
    Effect.gen(function* () {
      // Longer than the first request takes on a busy machine, and shorter than the checks, which come in pairs every
      // ten milliseconds.
      const two = yield* makeTwo(undefined, { GATEWAY_HANG_SECONDS: 0.5 })
      let looks = 0
      two.home.observed = ({ response }) => {
        looks++
        response.end("vllm:num_requests_running 1\nvllm:generation_tokens_total 7\n")
      }
      two.home.script = () => {}
      yield* send(two.address, { body: about("hi") })
      yield* soon(() => two.home.calls.length === 2)
      looks = 0
      yield* soon(() => looks > 300)
      two.home.script = answers(wholeAnswer("a"))
      yield* two.ask
      assert.strictEqual(two.other.calls.length, 1)
    })
  )
})
