import { createServer } from "node:http"
import { assert, it } from "@effect/vitest"
import { FailureCode, layerTracing, type MetricFamily } from "@seatrial/domain"
import { kubeMetrics } from "@seatrial/kube"
import { ConfigProvider, Effect, Layer, Option, Predicate, Schema } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { operatorMetrics } from "../../src/metrics.ts"
import { makeStage } from "./stage.ts"

const Span = Schema.Struct({
  traceId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  links: Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String }))
})
const Export = Schema.fromJsonString(
  Schema.Struct({ resourceSpans: Schema.Array(Schema.Struct({ scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) })) })) })
)

/** Receives spans like a collector, on a real socket. */
const collector = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly spans: Array<typeof Span.Type>; readonly close: () => void }>((resume) => {
    const spans: Array<typeof Span.Type> = []
    const server = createServer((request, response) => {
      let text = ""
      request.on("data", (chunk) => {
        text += String(chunk)
      })
      request.on("end", () => {
        if (request.url === "/v1/traces") {
          for (const { scopeSpans } of Schema.decodeUnknownSync(Export)(text).resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans)
        }
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed({ port: Predicate.isObject(address) ? Number(address.port) : 0, spans, close: () => server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "b7ad6b7169203331"

it.live("the passes over a deployment have their own traces, with a link to the request that made it", () =>
  Effect.gen(function* () {
    const { port, spans } = yield* collector
    const stage = makeStage()
    stage.change((row) => ({ ...row, traceparent: `00-${traceId}-${spanId}-01` }))
    const layerSettings = ConfigProvider.layer(ConfigProvider.fromUnknown({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }))
    yield* stage
      .operate(stage.until(() => stage.mirrored()?.message === "Serves."))
      .pipe(Effect.provide(layerTracing("seatrial-operator").pipe(Layer.provide(layerSettings))))

    const passes = spans.filter(({ name }) => name === "reconcile")
    assert.isAbove(passes.length, 0)
    for (const pass of passes) {
      assert.notStrictEqual(pass.traceId, traceId)
      assert.deepStrictEqual(pass.links, [{ traceId, spanId }])
    }
    const pod = JSON.stringify(Option.getOrUndefined(stage.kube.find("Pod", stage.kube.names("Pod")[0] ?? "")))
    assert.include(pod, `"seatrial.dev/traceparent":"00-${traceId}-${spanId}-01"`)
    assert.include(pod, `{"name":"TRACEPARENT","value":"00-${traceId}-${spanId}-01"}`)
  }).pipe(Effect.scoped)
)

it.live("the operator exposes exactly the documented metrics", () =>
  Effect.gen(function* () {
    const stage = makeStage()
    const shown = yield* stage.operate(
      Effect.andThen(
        stage.until(() => stage.mirrored()?.message === "Serves."),
        PrometheusMetrics.format()
      )
    )
    const families = new Map<string, MetricFamily>([kubeMetrics, operatorMetrics].flatMap(Object.values).map(({ family }) => [family.name, family]))
    for (const [, name = "", type] of shown.matchAll(/^# TYPE (seatrial_\S+) (\S+)$/gm)) {
      const family = families.get(name)
      // Tests in the same process may have counted for other programs.
      if (family === undefined && /^seatrial_(store|server|gateway)_/u.test(name)) continue
      assert.strictEqual(family?.type, type, name)
      for (const [, labels = ""] of shown.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? `, "gm"))) {
        const labelNames = [...labels.matchAll(/([a-z_]+)="/g)].map((match) => match[1]).filter((label) => label !== "le")
        assert.sameMembers(labelNames, [...(family?.labels ?? [])], name)
      }
    }
    assert.match(shown, /^seatrial_operator_models_unavailable 0$/m)
    // Prometheus sees a first alarm as a rise only if the counter was there before. Tests in the same process may have counted.
    assert.match(shown, /^seatrial_operator_sentinel_alarms_total \d+$/m)
    assert.match(shown, /^seatrial_operator_lost_wakeups_total\{phase="queued"\} \d+$/m)
    for (const code of FailureCode.literals) assert.match(shown, new RegExp(`^seatrial_operator_failures_total\\{code="${code}"\\} \\d`, "m"))
    assert.match(shown, /^seatrial_operator_deployments\{phase="activated"\} 1$/m)
    assert.match(shown, /^seatrial_operator_background_seconds_count\{kind="checking",outcome="done"\} [1-9]/m)
    assert.match(shown, /^seatrial_benchmark_output_tokens_per_second\{[^}]*concurrency="1"[^}]*\} 100$/m)
    assert.match(shown, /^seatrial_kube_pass_seconds_count\{queue="runs",outcome="done"\} [1-9]/m)
    assert.match(shown, /^seatrial_kube_queue_depth\{queue="runs"\} \d/m)
    assert.match(shown, /^seatrial_kube_queue_adds_total\{queue="runs"\} [1-9]/m)
  })
)

it.live("a model is counted while no engine answers, of this or an earlier revision", () =>
  Effect.gen(function* () {
    const stage = makeStage()
    const served = () => stage.mirrored()?.message === "Serves."
    const counted = Effect.map(PrometheusMetrics.format(), (shown) => /^seatrial_operator_models_unavailable (\d+)$/m.exec(shown)?.[1])
    const [missed, moving, again] = yield* stage.operate(
      Effect.gen(function* () {
        yield* stage.until(served)
        stage.setStory("starting")
        stage.kube.drop("Pod", stage.kube.names("Pod")[0] ?? "")
        yield* stage.until(() => !served())
        const without = yield* counted
        stage.change((row) => ({ ...row, earlier: 1 }))
        yield* stage.until(() => String(stage.mirrored()?.message).includes("1 of the earlier revision still serves."))
        const withEarlier = yield* counted
        stage.change((row) => ({ ...row, earlier: 0 }))
        stage.setStory("ready")
        stage.kube.drop("Pod", stage.kube.names("Pod")[0] ?? "")
        yield* stage.until(served)
        return [without, withEarlier, yield* counted] as const
      })
    )
    assert.deepStrictEqual([missed, moving, again], ["1", "0", "0"])
  })
)
