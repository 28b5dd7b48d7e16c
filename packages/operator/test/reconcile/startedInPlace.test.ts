import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Option, Predicate } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { report, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

type Stage = ReturnType<typeof makeStage>

/** A serving model with recorded fingerprints. */
const verified = () => {
  const stage = makeStage()
  stage.setReport(() => ({ ...report, fingerprints: [{ prompt: "p", sha256: "a".repeat(64) }], fingerprint_card: "simulated x1" }))
  return stage
}
const uidOf = (stage: Stage) => {
  const metadata = Option.getOrUndefined(stage.kube.find("Pod", enginePodName(run.id)))?.metadata
  return Predicate.isObject(metadata) ? metadata.uid : undefined
}
/** The container ends and restarts in its pod. */
const startAgain = (stage: Stage) =>
  Effect.gen(function* () {
    for (const ready of [false, true]) {
      stage.kube.setStatus("Pod", enginePodName(run.id), {
        phase: "Running",
        podIP: "127.0.3.1",
        conditions: ["Ready", "ContainersReady"].map((type) => ({ type, status: ready ? "True" : "False" })),
        containerStatuses: [{ name: "engine", ready, restartCount: 1, state: { running: {} } }]
      })
      if (!ready) yield* stage.until(() => stage.row().endpoints.length === 0)
    }
  })
const readyOf = (stage: Stage) => {
  const conditions = stage.mirrored()?.conditions
  const ready: unknown = Array.isArray(conditions) ? conditions.find(({ type }) => type === "Ready") : undefined
  return Predicate.isObject(ready) ? `${ready.status} ${ready.reason}` : ""
}
const eventNames = (stage: Stage) => stage.kube.names("Event").filter((name) => name.includes("fingerprintsdiffer")).length
const pods = (stage: Stage) => stage.writes.filter((write) => write.startsWith("create Pod ")).length
const serves = (stage: Stage) => () => stage.mirrored()?.message === "Serves."

describe("an engine whose container restarted in its pod with different answers", () => {
  it.effect("gets a new pod, once, with an event, and serves from there if the answers match", () => {
    const stage = verified()
    stage.setAnswers(({ restarts }) => (restarts > 0 ? "differs" : "same"))
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(serves(stage))
          const before = uidOf(stage)
          yield* startAgain(stage)
          yield* stage.until(() => stage.row().endpoints.length > 0)
          assert.notStrictEqual(uidOf(stage), before)
          yield* stage.until(serves(stage))
        })
      )
      assert.deepStrictEqual([readyOf(stage), eventNames(stage), pods(stage)], ["True Serving", 1, 2])
    })
  })

  it.effect("is not ready and stays without traffic if the new pod gives the same answers", () => {
    const stage = verified()
    let altered = false
    stage.setAnswers(() => (altered ? "differs" : "same"))
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(serves(stage))
          altered = true
          yield* startAgain(stage)
          yield* stage.until(() => readyOf(stage) === "False AnswersDiffer" && pods(stage) === 2 && eventNames(stage) === 2)
          for (let turn = 0; turn < 300; turn++) yield* Effect.yieldNow
          // The metric of an alert.
          assert.match(yield* PrometheusMetrics.format(), /^seatrial_operator_models_unavailable 1$/m)
        })
      )
      assert.deepStrictEqual([readyOf(stage), eventNames(stage), pods(stage)], ["False AnswersDiffer", 2, 2])
      assert.isEmpty(stage.row().endpoints)
      assert.match(String(stage.mirrored()?.message), /The engine gets no traffic\. Deploy the model again, or delete the engine's pod/)
      assert.deepStrictEqual(
        stage.row().nodeFaults.map(({ code }) => code),
        ["starts_differ"]
      )
    })
  })

  it.effect("is not ready while it is compared", () => {
    const stage = verified()
    return Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(serves(stage))
          stage.setPatience(Deferred.await(gate))
          yield* startAgain(stage)
          yield* stage.until(() => String(stage.mirrored()?.message).startsWith("Seatrial compares"))
          assert.strictEqual(readyOf(stage), "False EngineNotReady")
          yield* Deferred.succeed(gate, undefined)
          yield* stage.until(serves(stage))
        })
      )
      assert.deepStrictEqual([readyOf(stage), pods(stage)], ["True Serving", 1])
    })
  })
})
