import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Tracer } from "effect"
import { AccessLog } from "../src/observability/AccessLog.ts"
import { Histogram } from "../src/observability/Histogram.ts"
import { InferenceMetrics, inferenceMetrics } from "../src/observability/InferenceMetrics.ts"
import { RoutingMetrics, routingMetrics } from "../src/observability/RoutingMetrics.ts"
import { toOpenMetrics } from "../src/observability/toOpenMetrics.ts"
import { answers, chunk, done, finish, makeEngine, openStream, streams, usageFrame } from "./fakeEngine.ts"
import { chat, fetched, makeStage, outcomes, send, soon } from "./stage.ts"

const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
const traceparents = (calls: ReadonlyArray<{ readonly request: { readonly headers: Readonly<Record<string, unknown>> } }>) =>
  calls.map(({ request }) => request.headers.traceparent)

describe("a request's trace", () => {
  it.live("is passed to the engine unchanged if traces are not exported, unless it is malformed", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([engine.url])
      for (const traceparent of [caller, "none", undefined]) yield* fetched(address, traceparent === undefined ? {} : { headers: { traceparent } })
      yield* soon(() => outcomes(world).length === 6)
      assert.deepStrictEqual(traceparents(engine.calls), [caller, undefined, undefined])
    })
  )

  it.live("is one span, a child of the caller's and the parent of the engine's, with the outcome and without content", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.NativeSpan> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          if (options.kind === "server") spans.push(span)
          return span
        }
      })
      const engine = yield* makeEngine(streams(["secret words"]))
      const { address, world } = yield* Effect.provideService(makeStage([engine.url]), Tracer.Tracer, tracer)
      yield* fetched(address, { headers: { traceparent: caller } })
      const turned = yield* fetched(address, { headers: { traceparent: caller }, body: { ...chat, unheard: "secret words" } })
      yield* soon(() => outcomes(world).length === 3 && spans.every(({ status }) => status._tag === "Ended"))
      const [served, refused] = spans
      if (served === undefined || refused === undefined) return assert.fail()
      assert.deepStrictEqual([served.traceId, refused.traceId, spans.length], ["0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319c", 2])
      assert.deepStrictEqual(traceparents(engine.calls), [`00-${served.traceId}-${served.spanId}-01`])
      assert.deepInclude(Object.fromEntries(served.attributes), {
        "gen_ai.request.model": "acme/tiny",
        "http.response.status_code": 200,
        "gen_ai.usage.output_tokens": 1
      })
      assert.deepInclude(Object.fromEntries(refused.attributes), { "seatrial.request_id": turned.headers()["x-request-id"], "error.type": "unknown_parameter" })
      for (const { attributes } of spans) assert.notInclude(JSON.stringify([...attributes]), "secret")
    })
  )
})

describe("the gateway's routing metrics", () => {
  const line = (start: string) =>
    routingMetrics
      .format(false)
      .split("\n")
      .find((one) => one.startsWith(start))

  it.live("report the answers that engines write", () =>
    Effect.gen(function* () {
      const model = "acme/busy"
      const engine = yield* makeEngine(() => {})
      const { address, world } = yield* makeStage([engine.url])
      world.route = { ...world.route, model }
      const running = (count: number) => soon(() => line(`seatrial_gateway_running_requests{model="${model}"}`)?.endsWith(` ${count}`) === true)
      const [one, two] = [yield* send(address, { body: { ...chat, model } }), yield* send(address, { body: { ...chat, model } })]
      yield* running(2)
      one.request.destroy()
      yield* running(1)
      two.request.destroy()
      yield* running(0)
    })
  )

  it.live("report waits by cause and outcome, the states of engines, and retries", () =>
    Effect.gen(function* () {
      const model = "acme/routed"
      const full = yield* makeEngine(answers("{}", 503))
      const open = yield* makeEngine(streams(["a"]))
      const { address, world } = yield* makeStage([full.url, open.url])
      world.route = { ...world.route, model, concurrency: 1 }
      const of = (name: string, labels: string) => `seatrial_gateway_${name}{model="${model}",${labels}}`
      const body = { ...chat, model, stream: true }
      // The requests are spread over both engines. The full engine gets no requests for a second.
      let text = ""
      for (let count = 0; !text.includes(`${of("engines", 'state="full"')} 1`); count++) {
        const received = yield* fetched(address, { body: { ...body, messages: [{ role: "user", content: `hi ${count}` }] } })
        assert.strictEqual(received.status(), 200)
        text = routingMetrics.format(false)
      }
      assert.include(text, `${of("engines", 'state="open"')} 1`)
      assert.include(text, of("retries_total", 'reason="full"'))

      world.route = { ...world.route, endpoints: [] }
      const held = yield* send(address, { body })
      yield* soon(() => line(`seatrial_gateway_queued_requests{model="${model}"}`)?.endsWith(" 1") === true)
      world.route = { ...world.route, endpoints: [{ url: open.url, pod: "open" }] }
      yield* soon(() => held.ended === "end")
      assert.strictEqual(line(of("wait_seconds_count", 'for="start",outcome="served"'))?.endsWith(" 1"), true)
      world.route = { ...world.route, endpoints: [] }
      const left = yield* send(address, { body })
      yield* soon(() => line(`seatrial_gateway_queued_requests{model="${model}"}`)?.endsWith(" 1") === true)
      left.request.destroy()
      yield* soon(() => line(of("wait_seconds_count", 'for="start",outcome="left"'))?.endsWith(" 1") === true)
    })
  )

  it("have labels for a hundred models and one for all others", () => {
    const metrics = new RoutingMetrics()
    for (let model = 0; model < 150; model++) metrics.retried(`m${model}`, "lost")
    metrics.pools = () => Array.from({ length: 150 }, (_, model) => ({ model: `m${model}`, running: 3, queued: 2, engines: { open: 1, full: 0, ejected: 1 } }))
    const text = metrics.format(false)
    assert.include(text, 'seatrial_gateway_retries_total{model="other",reason="lost"} 50\n')
    assert.include(text, 'seatrial_gateway_running_requests{model="other"} 150\n')
    assert.include(text, 'seatrial_gateway_queued_requests{model="other"} 100\n')
    assert.include(text, 'seatrial_gateway_engines{model="other",state="ejected"} 50\n')
    assert.strictEqual(text.match(/^seatrial_gateway_queued_requests\{/gm)?.length, 101)
  })
})

it("drop a model without requests for an hour when a hundred models have labels", () => {
  const metrics = new RoutingMetrics()
  const clock = vi.spyOn(performance, "now").mockReturnValue(0)
  try {
    for (let model = 0; model < 100; model++) metrics.retried(`m${model}`, "lost")
    clock.mockReturnValue(3_600_001)
    metrics.retried("m7", "lost")
    metrics.format(false)
    metrics.retried("new", "lost")
    const text = metrics.format(false)
    assert.include(text, '{model="new",reason="lost"} 1\n')
    assert.include(text, '{model="m7",reason="lost"} 2\n')
    assert.notInclude(text, 'model="other",reason')
  } finally {
    clock.mockRestore()
  }
})

describe("the gateway's inference metrics", () => {
  it.live("report outcomes by model and class, tokens by kind, refusals by code, and missing or excessive usage", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(streams(["a", "b", "c"]))
      const { address, world } = yield* makeStage([engine.url])
      const model = "acme/counted"
      world.route = { ...world.route, model }
      const body = { ...chat, model, stream: true }
      const received = yield* fetched(address, { body })
      yield* fetched(address, { body: { ...body, unheard: 1 } })
      engine.script = (call) => openStream(call).end(chunk("a") + finish("stop") + done)
      yield* fetched(address, { body })
      engine.script = (call) => openStream(call).write(chunk("a", 1) + usageFrame(1), () => call.response.destroy())
      yield* fetched(address, { body })
      const excessive = usageFrame(1).replace('"completion_tokens":1', '"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":20}')
      engine.script = (call) => openStream(call).end(chunk("a") + finish("stop") + excessive + done)
      yield* fetched(address, { body })
      yield* soon(() => outcomes(world).length === 9)
      const text = inferenceMetrics.format(true)
      const of = `model="acme/counted",class="owner"`
      for (const line of [
        `seatrial_gateway_inference_total{${of},outcome="completed"} 3`,
        `seatrial_gateway_inference_total{${of},outcome="engine_failed"} 1`,
        `seatrial_gateway_tokens_total{${of},kind="input"} 20`,
        `seatrial_gateway_tokens_total{${of},kind="cache_read"} 10`,
        `seatrial_gateway_tokens_total{${of},kind="output"} 6`,
        `seatrial_gateway_without_usage_total{${of}} 1`,
        `seatrial_gateway_clipped_usage_total{${of}} 1`,
        `seatrial_gateway_first_token_seconds_count{${of}} 4`,
        "# TYPE seatrial_gateway_inference counter"
      ]) {
        assert.include(text, `${line}\n`)
      }
      assert.match(text, /^seatrial_gateway_refusals_total\{code="unknown_parameter"\} \d+$/m)
      assert.include(text, ` # {request_id="${received.headers()["x-request-id"]}"} `)
      assert.notInclude(inferenceMetrics.format(false), "request_id")
    })
  )

  it("are bounded: beyond a hundred models they share a label, and no model name can break a line", () => {
    const metrics = new InferenceMetrics()
    const usage = { input_tokens: 1, output_tokens: 2, cache_read_tokens: null, cache_write_tokens: null }
    for (let index = 0; index < 1_000; index++) metrics.of(`m"\n${index}`, "customer").ended("completed", usage)
    const lines = metrics.format(false).split("\n")
    const outcomes = lines.filter((line) => line.startsWith("seatrial_gateway_inference_total{"))
    assert.strictEqual(outcomes.length, 201)
    assert.include(outcomes, `seatrial_gateway_inference_total{model="other",class="customer",outcome="completed"} 800`)
    assert.include(outcomes, `seatrial_gateway_inference_total{model="m\\"\\n0",class="customer",outcome="completed"} 1`)
  })

  it("count each observation once, in the lowest bucket that fits", () => {
    const histogram = new Histogram([1, 2])
    for (const value of [0.5, 1, 1.5, 2, 3]) histogram.observe(value, `req_${value}`)
    assert.deepStrictEqual(histogram.lines("x", 'a="b"', false), [
      'x_bucket{a="b",le="1"} 2',
      'x_bucket{a="b",le="2"} 4',
      'x_bucket{a="b",le="+Inf"} 5',
      'x_sum{a="b"} 8',
      'x_count{a="b"} 5'
    ])
    assert.match(histogram.lines("x", "", true)[2] ?? "", /^x_bucket\{le="\+Inf"\} 5 # \{request_id="req_3"\} 3 \d+(\.\d+)?$/)
  })

  it("name counters as OpenMetrics requires", () =>
    assert.strictEqual(
      toOpenMetrics("# HELP a_total What\n# TYPE a_total counter\na_total 1\n\n# TYPE b gauge\nb 2\n"),
      "# HELP a What\n# TYPE a counter\na_total 1\n# TYPE b gauge\nb 2\n"
    ))
})

describe("the access log", () => {
  const line = { request_id: "req_1", endpoint: "/v1/completions", status: 200, code: null, latency_ms: 1 }

  it("collects one JSON line per request", () => {
    const written: Array<string> = []
    const log = new AccessLog({ write: (text) => written.push(text), writableLength: 0 })
    log.write(line)
    log.write({ ...line, request_id: "req_2" })
    assert.deepStrictEqual(written, [])
    log.flush()
    log.flush()
    assert.strictEqual(written.length, 1)
    assert.deepStrictEqual(
      written[0]
        ?.trimEnd()
        .split("\n")
        .map((text) => JSON.parse(text).annotations.request_id),
      ["req_1", "req_2"]
    )
  })

  it("drops lines that are not read, and logs how many", () => {
    const written: Array<string> = []
    const target = { write: (text: string) => written.push(text), writableLength: 16 * 1024 * 1024 }
    const log = new AccessLog(target)
    log.write(line)
    log.write(line)
    target.writableLength = 0
    log.write(line)
    log.flush()
    assert.strictEqual(written.join("").match(/"req_1"/g)?.length, 1)
    assert.include(written.join(""), '"dropped":2')
  })
})
