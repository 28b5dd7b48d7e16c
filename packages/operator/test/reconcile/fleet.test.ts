import { assert, describe, it } from "@effect/vitest"
import { ModelId } from "@seatrial/domain"
import { Deferred, Effect, Option, Predicate, Ref, Schema } from "effect"
import { TestClock } from "effect/testing"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { otherDeployment, report, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

type Stage = ReturnType<typeof makeStage>

const [first, second] = [enginePodName(run.id), enginePodName(run.id, 1)]
const messageOf = (stage: Stage) => stage.mirrored()?.message
const published = (stage: Stage) => stage.row().endpoints.map(({ pod }) => pod)
const uidOf = (stage: Stage, name: string) => {
  const metadata = Option.getOrUndefined(stage.kube.find("Pod", name))?.metadata
  return Predicate.isObject(metadata) ? metadata.uid : undefined
}
const minAvailable = (stage: Stage) => {
  const spec = Option.getOrUndefined(stage.kube.find("PodDisruptionBudget", stage.kube.names("PodDisruptionBudget")[0] ?? ""))?.spec
  return Predicate.isObject(spec) ? spec.minAvailable : undefined
}
/** A model with recorded fingerprints that is to serve with two engines, on a node of that many GPUs. */
const stageOf = (gpus: number) => {
  const stage = makeStage()
  stage.setReport(() => ({ ...report, fingerprints: [{ prompt: "p", sha256: "a".repeat(64) }], fingerprint_card: "simulated x1" }))
  stage.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": String(gpus) }, conditions: [{ type: "Ready", status: "True" }] } })
  return stage
}
const otherModel = Schema.decodeSync(ModelId)("mdl_01k3v7m8q2w4x6y8z0a2b4c6d9")
/** The owner asked for one engine at least. The second one may go to another model. */
const lendSecond = (stage: Stage) => stage.change((row) => ({ ...row, scaling: { minReplicas: 1, maxReplicas: 2, target: 0.8 } }))
/** Whether something limits the number of engines, and what. */
const limitOf = (stage: Stage) => {
  const conditions = stage.mirrored()?.conditions
  const condition = Array.isArray(conditions) ? conditions.find((each) => Predicate.isObject(each) && each.type === "ScalingLimited") : undefined
  return Predicate.isObject(condition) ? `${condition.status} ${condition.reason}` : null
}
const scale = (stage: Stage, replicas: number) => stage.change((row) => ({ ...row, replicas }))
const both = (stage: Stage) => () => messageOf(stage) === "Serves. 2 of 2 engines serve."

describe("a model that is scaled to two engines", () => {
  it.effect("gets a second one, which is compared before it has traffic, and a budget that lets one be evicted", () => {
    const stage = stageOf(2)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => messageOf(stage) === "Serves.")
        const compared = stage.worked.filter((work) => work.startsWith("boot")).length
        scale(stage, 2)
        yield* stage.until(both(stage))
        assert.deepStrictEqual(published(stage), [first, second])
        assert.strictEqual(stage.worked.filter((work) => work.startsWith("boot")).length, compared + 1)
        yield* stage.until(() => minAvailable(stage) === 1)
      })
    )
  })

  it.effect("compares all new engines at the same time", () => {
    const stage = stageOf(4)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => messageOf(stage) === "Serves.")
        const gate = yield* Deferred.make<void>()
        const comparing = yield* Ref.make(0)
        const arrive = Effect.andThen(
          Ref.updateAndGet(comparing, (count) => count + 1),
          (count) => (count === 3 ? Deferred.succeed(gate, undefined) : Effect.void)
        )
        // No comparison ends before all three run.
        stage.setPatience(Effect.andThen(arrive, Deferred.await(gate)))
        scale(stage, 4)
        yield* stage.until(() => messageOf(stage) === "Serves. 4 of 4 engines serve.")
        assert.strictEqual(yield* Ref.get(comparing), 3)
      })
    )
  })

  it.effect("keeps serving with one while the other is lost, replaced and compared again", () => {
    const stage = stageOf(2)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => messageOf(stage) === "Serves.")
        scale(stage, 2)
        yield* stage.until(both(stage))
        for (const name of [first, second]) {
          const uid = uidOf(stage, name)
          const writes = stage.published.length
          stage.kube.drop("Pod", name)
          // The other one may not be evicted before the new one has traffic.
          yield* stage.until(() => minAvailable(stage) === 2)
          assert.strictEqual(stage.published.slice(writes).join(), "1")
          // Without the lost one, and then with both.
          yield* stage.until(() => stage.published.slice(writes).join() === "1,2")
          yield* stage.until(both(stage))
          assert.notStrictEqual(uidOf(stage, name), uid)
        }
      })
    )
  })

  it.effect("waits for GPUs without asking the cluster for any, and gets them when a node has some", () => {
    const stage = stageOf(1)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => messageOf(stage) === "Serves.")
        scale(stage, 2)
        yield* stage.until(() => messageOf(stage) === "Another engine waits for free GPUs. 1 of 2 engines serve.")
        assert.deepStrictEqual(stage.kube.names("Pod"), [first])
        stage.kube.add("Node", "node-2", { status: { allocatable: { "nvidia.com/gpu": "1" }, conditions: [{ type: "Ready", status: "True" }] } })
        yield* stage.until(both(stage))
      })
    )
  })

  it.effect("goes back to one: the second is withdrawn first, and deleted when its requests have ended", () => {
    const stage = stageOf(2)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => messageOf(stage) === "Serves.")
        scale(stage, 2)
        yield* stage.until(both(stage))
        const uid = uidOf(stage, first)
        stage.setRunning(1)
        scale(stage, 1)
        yield* stage.until(() => published(stage).join() === first)
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(stage.kube.names("Pod"), [first, second])
        stage.setRunning(0)
        while (stage.kube.names("Pod").length > 1) yield* TestClock.adjust("1 minute")
        yield* stage.until(() => messageOf(stage) === "Serves.")
        assert.strictEqual(uidOf(stage, first), uid)
      })
    )
  })

  it.effect("gives the second one to another model that waits for its GPU", () => {
    const stage = stageOf(2)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => messageOf(stage) === "Serves.")
        scale(stage, 2)
        yield* stage.until(both(stage))
        lendSecond(stage)
        stage.add({ ...run, id: otherDeployment, engineRun: otherDeployment, modelId: otherModel, model: "acme/other" })
        yield* stage.until(() => published(stage).join() === first)
        while (!stage.kube.names("Pod").includes(enginePodName(otherDeployment))) yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(stage.kube.names("Pod").toSorted(), [first, enginePodName(otherDeployment)].toSorted())
      })
    )
  })

  it.effect("gives the second one to another model that its organization's limit holds back, although GPUs are free, and says what limits it", () => {
    const stage = stageOf(4)
    return stage.operate(
      Effect.gen(function* () {
        stage.change((row) => ({ ...row, gpuLimit: 2 }))
        yield* stage.until(() => messageOf(stage) === "Serves.")
        scale(stage, 2)
        yield* stage.until(both(stage))
        assert.strictEqual(limitOf(stage), "False Granted")
        assert.deepStrictEqual(stage.row().engines, { granted: 2, ready: 2, limit: null })
        lendSecond(stage)
        stage.add({ ...run, id: otherDeployment, engineRun: otherDeployment, modelId: otherModel, model: "acme/other", gpuLimit: 2 })
        yield* stage.until(() => published(stage).join() === first)
        while (!stage.kube.names("Pod").includes(enginePodName(otherDeployment))) yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(stage.kube.names("Pod").toSorted(), [first, enginePodName(otherDeployment)].toSorted())
        yield* stage.until(() => limitOf(stage) === "True OrganizationLimit")
        assert.deepStrictEqual(stage.row().engines, { granted: 1, ready: 1, limit: "organization_limit" })
      })
    )
  })
})
