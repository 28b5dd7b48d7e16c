import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { moveInterval } from "../../src/limits.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
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
})
