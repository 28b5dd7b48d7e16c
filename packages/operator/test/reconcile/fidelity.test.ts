import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { adapted } from "../adapted.ts"
import { failedReport, report } from "../observations.ts"
import { makeStage } from "./stage.ts"

const allPhases = ["screening", "materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating", "activated"]
const mergedWork = "fidelity of the merged model"
const compared = "checking of the model, which is compared"

type Stage = ReturnType<typeof makeStage>
const serves = (stage: Stage) => () => stage.mirrored()?.message === "Serves."
const phasesOf = (stage: Stage) => stage.row().history.map(({ phase }) => phase)
/** A deletion may be repeated before the watch has shown it. */
const podWrites = (stage: Stage) =>
  stage.writes
    .filter((write, at, all) => / Pod /.test(write) && write !== all.slice(0, at).findLast((other) => / Pod /.test(other)))
    .map((write) => write.split(" ")[0])
/** The init containers of the current pod. */
const before = (stage: Stage) => JSON.stringify(Option.getOrNull(stage.kube.find("Pod", stage.kube.names("Pod")[0] ?? "")))

describe("an adapter", () => {
  it.effect("is compared with the merged model, which answers first, in the same place, and is deleted before the adapter starts", () => {
    const stage = makeStage(Option.none(), adapted.facts)
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(serves(stage)))
      assert.deepStrictEqual(phasesOf(stage), allPhases)
      assert.deepStrictEqual(stage.worked, ["screening", mergedWork, compared, "measuring of the model", "benchmarking of the model"])
      assert.deepStrictEqual(podWrites(stage), ["create", "remove", "create"])
      assert.notInclude(before(stage), "merge-weights")
    })
  })

  it.effect("is compared even if the operator dies behind any single write: answers are collected again, and nothing is checked without them", () =>
    Effect.gen(function* () {
      let repeated = 0
      for (let count = 1; ; count++) {
        const stage = makeStage(Option.none(), adapted.facts)
        const died = yield* stage.operateUntilWrite(count, serves(stage))
        yield* stage.operate(stage.until(serves(stage)))
        assert.deepStrictEqual(phasesOf(stage), allPhases, `after write ${count}`)
        assert.strictEqual(stage.kube.names("Pod").length, 1)
        assert.notInclude(before(stage), "merge-weights", `after write ${count}`)
        const checks = stage.worked.filter((work) => work.startsWith("checking"))
        assert.isAtLeast(checks.length, 1)
        assert.deepStrictEqual([...new Set(checks)], [compared], `after write ${count}`)
        if (stage.worked.filter((work) => work === mergedWork).length > 1) repeated++
        if (!died) break
      }
      assert.isAtLeast(repeated, 2)
    })
  )

  it.effect("is compared on another node with the merged model's answers on that node", () => {
    const stage = makeStage(Option.none(), adapted.facts)
    stage.kube.add("Node", "node-2", { status: { allocatable: { "nvidia.com/gpu": "1" }, conditions: [{ type: "Ready", status: "True" }] } })
    const garbage = failedReport("text_likelihood", "8.90 nats per token")
    stage.setReport((node) => (node === "node-1" ? garbage : report))
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => serves(stage)() || stage.row().phase === "failed"))
      assert.deepStrictEqual(stage.worked, ["screening", mergedWork, compared, mergedWork, compared, "measuring of the model", "benchmarking of the model"])
    })
  })

  it.effect("that is canceled while the merged model starts leaves no objects", () => {
    const stage = makeStage(Option.none(), adapted.facts)
    stage.setStory("starting")
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => stage.row().phase === "booting" && before(stage).includes("merge-weights")))
      stage.cancel(1)
      yield* stage.operate(stage.until(() => stage.released() > 0))
      assert.deepStrictEqual([stage.kube.names("Pod"), stage.worked], [[], ["screening"]])
    })
  })

  it.effect("of a quantized base is not compared, because nothing can be merged into it", () => {
    const { facts } = adapted
    const stage = makeStage(Option.none(), { ...facts, config: { ...facts.config, quantization: "fp8" } })
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(serves(stage)))
      assert.deepStrictEqual(stage.worked.slice(0, 2), ["screening", "checking of the model"])
      assert.deepStrictEqual(podWrites(stage), ["create"])
    })
  })
})
