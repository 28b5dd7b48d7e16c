import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { moveStopped } from "../../src/apply/modelVerdicts.ts"
import { moveInterval } from "../../src/limits.ts"
import { enginePodName, objectName } from "../../src/resources/objectNames.ts"
import { otherDeployment, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

const [first, second] = [enginePodName(run.id), enginePodName(run.id, 1)]
const newer = [enginePodName(otherDeployment)]

describe("a model with two engines that moves to a new revision", () => {
  it.effect("keeps both until an engine of the new one is ready, however many endpoints that has", () => {
    const stage = makeStage()
    stage.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "3" }, conditions: [{ type: "Ready", status: "True" }] } })
    const published = () => stage.row().endpoints.map(({ pod }) => pod)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.mirrored()?.message === "Serves.")
        stage.change((row) => ({ ...row, replicas: 2 }))
        yield* stage.until(() => stage.mirrored()?.message === "Serves. 2 of 2 engines serve.")
        // The endpoint is in the database, and its pod does not exist.
        stage.change((row) => ({ ...row, newer, revision: row.revision === null ? null : { ...row.revision, status: "superseded" } }))
        yield* stage.until(() => stage.mirrored()?.message === "This earlier revision serves with 2 engines until the new revision has enough engines.")
        assert.deepStrictEqual(published(), [first, second])
        stage.add({ ...run, id: otherDeployment, engineRun: otherDeployment, model: "acme/other" })
        while (published().join() !== first) yield* TestClock.adjust(moveInterval)
        stage.change((row) => ({ ...row, newer: [...newer, ...newer] }))
        while (published().length > 0) yield* TestClock.adjust(moveInterval)
        // The stage has no engines that report requests, so they drain for long.
        assert.includeMembers(stage.kube.names("Pod"), [first, second])
      })
    )
  })

  it.effect("waits for an engine that finishes its requests, and says that it has stopped only if none does", () => {
    const stage = makeStage()
    stage.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "3" }, conditions: [{ type: "Ready", status: "True" }] } })
    const published = () => stage.row().endpoints.map(({ pod }) => pod)
    const newRow = () => stage.rows().find(({ id }) => id === otherDeployment) ?? run
    const isStopped = () => JSON.stringify(Option.getOrUndefined(stage.kube.find("ModelDeployment", objectName(otherDeployment)))?.status).includes(moveStopped)
    const engines = () => stage.kube.names("Pod").filter((name) => name.startsWith(objectName(otherDeployment)))
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.mirrored()?.message === "Serves.")
        stage.change((row) => ({ ...row, replicas: 2 }))
        yield* stage.until(() => published().length === 2)
        stage.add({ ...run, id: otherDeployment, engineRun: otherDeployment, createdAt: run.createdAt + 1 })
        yield* stage.until(() => newRow().endpoints.length === 1)
        stage.change((row) => ({ ...row, newer: [], revision: row.revision === null ? null : { ...row.revision, status: "superseded" } }))
        // All GPUs are taken, and the earlier revision keeps both engines until others serve.
        stage.add({ ...newRow(), replicas: 3, earlier: 2 })
        yield* stage.until(isStopped)
        stage.setRunning(1)
        stage.change((row) => ({ ...row, newer }))
        while (published().length > 1) yield* TestClock.adjust(moveInterval)
        stage.add({ ...newRow(), replicas: 2, earlier: 1 })
        for (let tries = 0; isStopped() && tries < 10; tries++) yield* TestClock.adjust(moveInterval)
        for (const _ of Array.from({ length: 10 })) {
          yield* TestClock.adjust(moveInterval)
          assert.isFalse(isStopped())
        }
        assert.includeMembers(stage.kube.names("Pod"), [first, second])
        stage.setRunning(0)
        while (engines().length < 2) {
          yield* TestClock.adjust(moveInterval)
          assert.isFalse(isStopped())
        }
      })
    )
  })
})
