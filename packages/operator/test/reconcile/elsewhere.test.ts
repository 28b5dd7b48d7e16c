import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { failedReport, report, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

const garbage = failedReport("text_likelihood", "8.90 nats per token")
const trial = ["provisioning", "booting", "checking"]

type Stage = ReturnType<typeof makeStage>
const phasesOf = (stage: Stage) => stage.row().history.map(({ phase }) => phase)
/** Two nodes, one of which gives garbage. */
const twoNodes = (mutations: (node: string) => boolean) => {
  const stage = makeStage()
  stage.kube.add("Node", "node-2", { status: { allocatable: { "nvidia.com/gpu": "1" }, conditions: [{ type: "Ready", status: "True" }] } })
  stage.setReport((node) => (mutations(node) ? garbage : report))
  return stage
}
const isOver = (stage: Stage) => () => stage.mirrored()?.message === "Serves." || stage.row().phase === "failed"

describe("a run whose checks found a possible fault of its node", () => {
  it.effect("is tried on another node, from the first check on, and serves from there", () => {
    const stage = twoNodes((node) => node === "node-1")
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(isOver(stage)))
      const rest = ["measuring", "benchmarking", "activating", "activated"]
      assert.deepStrictEqual(phasesOf(stage), ["screening", "materializing", ...trial, "queued", ...trial, ...rest])
      assert.deepStrictEqual([stage.nodeOf(), stage.row().nodeFaults.map(({ code, node }) => `${code} ${node}`)], ["node-2", ["output_garbage node-1"]])
    })
  })

  it.effect("fails if the second node finds the same", () => {
    const stage = twoNodes(() => true)
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(isOver(stage)))
      assert.deepStrictEqual(phasesOf(stage), ["screening", "materializing", ...trial, "queued", ...trial, "failed"])
      assert.strictEqual(stage.row().failure?.code, "output_garbage")
    })
  })

  it.effect("ends the same after a crash behind any single write", () =>
    Effect.gen(function* () {
      for (let count = 8; ; count += 2) {
        const stage = twoNodes((node) => node === "node-1")
        const died = yield* stage.operateUntilWrite(count, isOver(stage))
        yield* stage.operate(stage.until(isOver(stage)))
        assert.deepStrictEqual([stage.nodeOf(), stage.row().phase, stage.row().requeues], ["node-2", "activated", 1], `after write ${count}`)
        if (!died) break
      }
    })
  )
})

describe("an engine whose checks make it busy", () => {
  /** Sets the pod's readiness and the restart count of its container. */
  const says = (stage: Stage, ready: boolean, restarts = 0) =>
    stage.kube.setStatus("Pod", enginePodName(run.id), {
      phase: "Running",
      podIP: "127.0.3.1",
      conditions: ["Ready", "ContainersReady"].map((type) => ({ type, status: ready ? "True" : "False" })),
      containerStatuses: [{ name: "engine", ready, restartCount: restarts, state: { running: {} } }]
    })
  const shows = (stage: Stage, words: string) => () => String(stage.mirrored()?.message).startsWith(words)

  it.effect("is checked once however often it answers its probes late, and again if it has restarted", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const begun = () => stage.worked.filter((kind) => kind.startsWith("checking")).length
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.row().phase === "materializing")
          stage.setPatience(Deferred.await(gate))
          yield* stage.until(() => begun() === 1)
          for (const restarts of [0, 0, 1]) {
            for (const [ready, message] of [
              [false, "The deployment waits for the engine"],
              [true, "Seatrial checks the"]
            ] as const) {
              yield* TestClock.adjust("2 seconds")
              says(stage, ready, restarts)
              yield* stage.until(shows(stage, message))
            }
          }
          assert.strictEqual(begun(), 2)
          yield* Deferred.succeed(gate, undefined)
          yield* stage.until(isOver(stage))
        })
      )
      assert.deepStrictEqual([stage.row().phase, begun()], ["activated", 2])
    })
  })
})
