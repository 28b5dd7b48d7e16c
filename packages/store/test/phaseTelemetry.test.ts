import { assert, it } from "@effect/vitest"
import { Effect, Layer, Option, Tracer } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { Deployments, ModelAdmin, Runs } from "../src/index.ts"
import { layerStore } from "./stage.ts"
import { makeCaller, newModel, walk } from "./support/index.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "b7ad6b7169203331"
const traceparent = `00-${traceId}-${spanId}-01`

/** A tracer that keeps its spans of phases. */
const makeRecorder = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      if (options.name.startsWith("phase ")) spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}

const layerAll = ModelAdmin.layerSql.pipe(Layer.provideMerge(layerStore))

it.effect("every phase is counted and is a span of the request that made the deployment, whoever ends it", () => {
  const { spans, tracer } = makeRecorder()
  return Effect.gen(function* () {
    const deployments = yield* Deployments
    const runs = yield* Runs
    const { caller } = yield* makeCaller("traced")
    const { orgId } = caller
    const create = (name: string) => Effect.map(deployments.create(newModel(caller, name, name, { traceparent })), ({ id }) => id)
    const sumsOf = (shown: string) =>
      new Map([...shown.matchAll(/^(seatrial_store_phase_seconds_sum\{.*\}) (\S+)$/gmu)].map(([, name = "", sum]) => [name, Number(sum)]))
    // Other tests of the process count into the same metric.
    const before = sumsOf(yield* PrometheusMetrics.format())
    const ended = (phase: string, outcome: string, seconds = 7) =>
      Effect.map(PrometheusMetrics.format(), (shown) => {
        const name = `seatrial_store_phase_seconds_sum{phase="${phase}",outcome="${outcome}"}`
        assert.approximately((sumsOf(shown).get(name) ?? 0) - (before.get(name) ?? 0), seconds, 0.001)
        const span = spans.at(-1) ?? assert.fail("no span")
        assert.deepStrictEqual([span.name, span.traceId, Option.getOrNull(span.parent)?.spanId], [`phase ${phase}`, traceId, spanId])
        assert.strictEqual(span.status._tag === "Ended" ? span.status.endTime - span.status.startTime : 0n, BigInt(seconds) * 1_000_000_000n)
        return Object.fromEntries(span.attributes)
      })

    const canceled = yield* create("canceled")
    yield* TestClock.adjust("7 seconds")
    yield* deployments.cancel(orgId, canceled, caller.userId)
    assert.deepInclude(yield* ended("screening", "cancelled"), { "seatrial.deployment": canceled, "seatrial.next": "cancelled" })

    const deleted = yield* create("deleted")
    yield* walk(caller, deleted, "booting")
    yield* TestClock.adjust("7 seconds")
    yield* (yield* ModelAdmin).remove(orgId, Option.getOrThrow(yield* runs.observe(deleted)).modelId)
    assert.deepInclude(yield* ended("booting", "cancelled"), { "seatrial.deployment": deleted, "seatrial.next": "cancelled" })

    const failed = yield* create("failed")
    yield* walk(caller, failed, "checking")
    yield* TestClock.adjust("7 seconds")
    const failure = { code: "internal", text: "Test" } as const
    yield* runs.enter({ id: failed, orgId, from: "checking", to: "failed", reason: "Test", failure })
    assert.deepInclude(yield* ended("checking", "failed"), { "seatrial.next": "failed", "seatrial.failure": "internal" })

    const served = yield* create("served")
    yield* walk(caller, served, "activating")
    yield* TestClock.adjust("7 seconds")
    yield* runs.activate({ id: served, orgId, from: "activating" })
    assert.deepInclude(yield* ended("activating", "passed"), { "seatrial.deployment": served, "seatrial.next": "activated" })
    assert.isTrue(yield* Effect.map(PrometheusMetrics.format(), (shown) => shown.includes('phase="provisioning",outcome="passed"')))
  }).pipe(Effect.provideService(Tracer.Tracer, tracer), Effect.provide(layerAll))
})
