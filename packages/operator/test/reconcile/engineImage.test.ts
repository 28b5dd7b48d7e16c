import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { otherDeployment } from "../observations.ts"
import { makeStage } from "./stage.ts"

type Stage = ReturnType<typeof makeStage>

/** Patches the image of the host class. */
const patchImage = (stage: Stage, image: string) =>
  stage.kube.add("HostClass", "local", {
    spec: {
      runtimes: [{ runtime: "reference", image }],
      gpuPool: "simulated",
      gpuCount: 1,
      gpuMemoryBytes: 2 ** 30,
      pricePerGpuHour: "1",
      bootDeadlineSeconds: 60
    }
  })
const imageOf = (stage: Stage): unknown => {
  const [name = ""] = stage.kube.names("Pod")
  const spec = Option.getOrUndefined(stage.kube.find("Pod", name))?.spec
  const containers = Predicate.isObject(spec) ? spec.containers : undefined
  const container: unknown = Array.isArray(containers) ? containers[0] : undefined
  return Predicate.isObject(container) ? container.image : undefined
}
const statusOf = (stage: Stage, name: string) => {
  const status = Option.getOrUndefined(stage.kube.find("ModelDeployment", name))?.status
  return Predicate.isObject(status) ? status : {}
}
const readyOf = (stage: Stage, name: string): unknown => {
  const { conditions } = statusOf(stage, name)
  const ready: unknown = Array.isArray(conditions) ? conditions.find((one) => Predicate.isObject(one) && one.type === "Ready") : undefined
  return Predicate.isObject(ready) ? ready.status : undefined
}
const serves = (stage: Stage) => stage.until(() => stage.mirrored()?.message === "Serves." && stage.kube.names("Pod").length === 1)

describe("the image of an engine", () => {
  it.effect("of a verified revision keeps serving, also in another pod, even if the host class changes", () => {
    const stage = makeStage()
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage)
        assert.strictEqual(stage.row().revision?.engineImage, "reference:1")
        patchImage(stage, "nowhere/never:tried")
        stage.kube.drop("Pod", stage.kube.names("Pod")[0] ?? "")
        yield* stage.until(() => stage.published.length >= 3)
        yield* serves(stage)
        assert.strictEqual(imageOf(stage), "reference:1")
        assert.strictEqual(stage.mirrored()?.engineImage, "reference:1")
      })
    )
  })

  it.effect("of a verified revision keeps serving by digest: a moved tag gets no traffic, and the next pod has the verified image", () => {
    const stage = makeStage()
    const [tried, moved] = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`)
    const runs = (digest: string | undefined) => {
      const conditions = [
        { type: "PodScheduled", status: "True" },
        { type: "Ready", status: "True" }
      ]
      const engine = { name: "engine", ready: true, restartCount: 0, imageID: `docker.io/library/reference@${digest}`, state: { running: {} } }
      stage.kube.setStatus("Pod", stage.kube.names("Pod")[0] ?? "", { phase: "Running", podIP: "127.0.3.1", conditions, containerStatuses: [engine] })
    }
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage)
        runs(tried)
        yield* stage.until(() => stage.mirrored()?.engineDigest === tried)
        assert.strictEqual(imageOf(stage), "reference:1")
        const before = stage.published.length
        // Its container restarted with another image.
        runs(moved)
        yield* stage.until(() => imageOf(stage) === `reference@${tried}`)
        assert.strictEqual(stage.published[before], 0)
        yield* serves(stage)
        assert.strictEqual(stage.mirrored()?.engineDigest, tried)
        const eventsWith = stage.kube.names("Event").filter((name) => name.includes(".engineimagechanged."))
        assert.strictEqual(eventsWith.length, 1)
        assert.deepInclude(Option.getOrThrow(stage.kube.find("Event", eventsWith[0] ?? "")), { type: "Warning", reason: "EngineImageChanged" })
      })
    )
  })

  it.effect("before any trial is the current one of the host class, also for a pod that waits for its node", () => {
    const stage = makeStage()
    stage.setStory("unschedulable")
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "provisioning" && imageOf(stage) === "reference:1")
        patchImage(stage, "reference:2")
        yield* stage.until(() => imageOf(stage) === "reference:2")
        // Until the write is observed.
        yield* Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)
        stage.setStory("ready")
        patchImage(stage, "reference:3")
        yield* serves(stage)
        assert.deepStrictEqual([imageOf(stage), stage.row().revision?.engineImage], ["reference:3", "reference:3"])
      })
    )
  })
})

describe("a model that serves", () => {
  it.effect("shows an outage of its engine by events and in every object that represents it, including a run that reused the revision", () => {
    const stage = makeStage()
    const follower = otherDeployment.replace("_", "-")
    const eventsWith = (reason: string) =>
      stage.kube
        .names("Event")
        .map((name) => Option.getOrUndefined(stage.kube.find("Event", name)))
        .filter((event) => event?.reason === reason)
    return stage.operate(
      Effect.gen(function* () {
        yield* serves(stage)
        stage.add({ ...stage.row(), id: otherDeployment })
        yield* stage.until(() => readyOf(stage, follower) === "True")
        assert.isString(statusOf(stage, follower).pod)
        stage.setStory("starting")
        stage.kube.drop("Pod", stage.kube.names("Pod")[0] ?? "")
        yield* stage.until(() => readyOf(stage, follower) === "False" && stage.mirrored()?.message === "The engine is not ready: It loads the model.")
        // One for each object.
        yield* stage.until(() => eventsWith("EngineNotReady").length === 2)
        assert.deepInclude(eventsWith("EngineNotReady")[0], { type: "Warning" })
        const [name = ""] = stage.kube.names("Pod")
        const ready = { name: "engine", ready: true, restartCount: 0, state: { running: {} } }
        const conditions = [
          { type: "PodScheduled", status: "True" },
          { type: "Ready", status: "True" }
        ]
        stage.kube.setStatus("Pod", name, { phase: "Running", podIP: "127.0.3.1", conditions, containerStatuses: [ready] })
        yield* stage.until(() => readyOf(stage, follower) === "True" && eventsWith("Serving").length === 2)
        assert.deepInclude(eventsWith("Serving")[0], { type: "Normal" })
      })
    )
  })
})
