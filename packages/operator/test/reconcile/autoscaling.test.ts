import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Option, Predicate } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { makeStage } from "./stage.ts"

type Stage = ReturnType<typeof makeStage>

/** A model whose engine processes 4 requests at once, with limits for the autoscaler, on a node of four GPUs. */
const stageOf = () => {
  const stage = makeStage()
  stage.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "4" }, conditions: [{ type: "Ready", status: "True" }] } })
  return stage
}
const limit = (stage: Stage) => stage.change((row) => ({ ...row, replicas: 1, scaling: { minReplicas: 1, maxReplicas: 3, target: 0.8 } }))
const serves = (stage: Stage, message: string) => stage.until(() => stage.mirrored()?.message === message)
const replicas = (stage: Stage) => stage.row().replicas
/** Whether something limits the number of engines, and what. */
const limitOf = (stage: Stage) => {
  const conditions = stage.mirrored()?.conditions
  const limited = Array.isArray(conditions) ? conditions.find((one) => Predicate.isObject(one) && one.type === "ScalingLimited") : undefined
  return Predicate.isObject(limited) ? `${limited.status} ${limited.reason}` : ""
}
const steps = (stage: Stage) =>
  stage.kube.names("Event").flatMap((name) => {
    const event = Option.getOrUndefined(stage.kube.find("Event", name))
    return Predicate.isObject(event) && String(event.reason).startsWith("Scaled") ? [`${String(event.reason)}: ${String(event.note)}`] : []
  })
const wait = (seconds: number) => Effect.forEach(Array.from({ length: seconds / 2 }), () => TestClock.adjust("2 seconds"), { discard: true })

describe("a model with limits for the autoscaler", () => {
  it.effect("gets engines for its load in one step, and gives them back one at a time", () => {
    const stage = stageOf()
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage, "Serves.")
        stage.setRequests(4)
        limit(stage)
        yield* wait(20)
        assert.strictEqual(replicas(stage), 1)
        // A load that requires no pass is in the metric too.
        stage.setRequests(3)
        yield* wait(6)
        assert.match(yield* PrometheusMetrics.format(), /^seatrial_model_demand_requests\{[^}]*\} 3$/mu)
        stage.setRequests(20)
        yield* wait(6)
        assert.strictEqual(replicas(stage), 3)
        yield* serves(stage, "Serves. 3 of 3 engines serve.")
        assert.deepStrictEqual(steps(stage), ["ScaledUp: Scaled from 1 to 3: 20 requests run or wait, and one engine processes 4 at once."])
        stage.setRequests(0)
        yield* wait(170)
        assert.strictEqual(replicas(stage), 3)
        yield* wait(16)
        assert.strictEqual(replicas(stage), 2)
        yield* wait(8)
        assert.strictEqual(replicas(stage), 2)
        yield* wait(20)
        assert.strictEqual(replicas(stage), 1)
        yield* wait(600)
        assert.strictEqual(replicas(stage), 1)
      })
    )
  })

  it.effect("says that its load needs more engines than the autoscaler may set, until a window after the load has fallen", () => {
    const stage = stageOf()
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage, "Serves.")
        limit(stage)
        stage.setRequests(12)
        yield* wait(6)
        yield* serves(stage, "Serves. 3 of 3 engines serve.")
        yield* stage.until(() => limitOf(stage) === "False Granted")
        stage.setRequests(13)
        yield* wait(6)
        yield* stage.until(() => limitOf(stage) === "True MaxReplicas")
        assert.deepStrictEqual(stage.row().engines, { granted: 3, ready: 3, limit: "max_replicas" })
        stage.setRequests(11)
        yield* wait(170)
        assert.strictEqual(limitOf(stage), "True MaxReplicas")
        yield* wait(20)
        yield* stage.until(() => limitOf(stage) === "False Granted")
        assert.deepStrictEqual(stage.row().engines, { granted: 3, ready: 3, limit: null })
      })
    )
  })

  it.effect("and a minimum of 0 releases all engines after hold_seconds without requests, returns with one, and grows again", () => {
    const stage = stageOf()
    const load = (requests: number) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        stage.setRequests(requests)
        stage.change((row) => ({ ...row, inFlight: requests, lastUsedAt: now }))
      })
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage, "Serves.")
        stage.change(({ revision, ...row }) => ({
          ...row,
          replicas: 1,
          scaling: { minReplicas: 0, maxReplicas: 3, target: 0.8 },
          revision: revision === null ? null : { ...revision, settings: { ...revision.settings, hold_seconds: 60 } }
        }))
        yield* load(20)
        yield* wait(6)
        yield* serves(stage, "Serves. 3 of 3 engines serve.")
        yield* load(0)
        yield* wait(120)
        assert.deepStrictEqual(stage.kube.names("Pod"), [])
        assert.match(String(stage.mirrored()?.message), /^Idle/)
        // The number falls without engines too, so that one request does not start three.
        yield* wait(600)
        assert.deepStrictEqual([replicas(stage), stage.kube.names("Pod")], [1, []])
        yield* load(1)
        yield* serves(stage, "Serves.")
        assert.lengthOf(stage.kube.names("Pod"), 1)
        yield* load(20)
        yield* wait(6)
        yield* serves(stage, "Serves. 3 of 3 engines serve.")
      })
    )
  })

  it.effect("keeps its number while no gateway reports the load, and without limits", () => {
    const stage = stageOf()
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage, "Serves.")
        stage.change((row) => ({ ...row, replicas: 2, scaling: { minReplicas: 1, maxReplicas: 3, target: 0.8 } }))
        yield* wait(600)
        assert.strictEqual(replicas(stage), 2)
        stage.setRequests(20)
        stage.change((row) => ({ ...row, scaling: null }))
        yield* wait(20)
        assert.strictEqual(replicas(stage), 2)
      })
    )
  })
})
