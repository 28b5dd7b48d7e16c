import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { TestClock } from "effect/testing"
import { decide } from "../../src/decide/decide.ts"
import { endRefused, givesClaimBack } from "../../src/decide/refused.ts"
import { makePool } from "../../src/gather/capacity/Pool.ts"
import { refusalDeadline, refusalDeadlineOfReplacement } from "../../src/limits.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { deploymentId, observationOf, otherDeployment, podClass, revision, run } from "../observations.ts"
import { makeStage } from "./stage.ts"

const refusal = { kind: "pod", object: `Pod/${enginePodName(deploymentId)}`, reason: "Forbidden", message: "exceeded quota", since: 0 } as const
const refused = (change: Partial<Observation> = {}, runChange: Partial<Observation["run"]> = {}) =>
  observationOf("provisioning", { refusal, ...change }, runChange)

describe("a pod that the cluster refuses", () => {
  it.effect.each([
    ["by a policy", 403, "Denied", "Forbidden"],
    ["because a webhook is down", 500, "Retryable", "InternalError"],
    ["because a webhook takes too long", 504, "Retryable", "Timeout"]
  ] as const)("%s is shown with its cause, a reason and a warning, and fails its run at the deadline with what to do", ([, status, error, reason]) => {
    const stage = makeStage()
    const { kube } = stage
    kube.refuse("Pod", status, error, undefined, reason)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "provisioning")
        yield* TestClock.adjust("11 seconds")
        yield* stage.until(() => Predicate.isObject(stage.mirrored()?.cause))
        const object = `Pod/${enginePodName(stage.row().id)}`
        assert.deepInclude(stage.mirrored()?.cause, { reason, message: "Pod is refused", object })
        const conditions = stage.mirrored()?.conditions
        const ready = Array.isArray(conditions) ? conditions.find((condition) => Predicate.isObject(condition) && condition.type === "Ready") : undefined
        assert.deepInclude(ready, { status: "False", reason: "PodRefused", message: `The cluster refuses ${object}: Pod is refused` })
        const events = kube.names("Event").flatMap((name) => Option.toArray(kube.find("Event", name)))
        assert.lengthOf(
          events.filter(({ reason, type }) => reason === "PodRefused" && type === "Warning"),
          1
        )
        yield* TestClock.adjust("9 minutes")
        assert.strictEqual(stage.row().phase, "provisioning")
        yield* TestClock.adjust("2 minutes")
        yield* stage.until(() => stage.row().phase === "failed")
        assert.strictEqual(stage.row().failure?.code, "container_blocked")
        assert.match(stage.row().failure?.text ?? "", /^The cluster refused the engine's pod for 10 minutes: .* Ask the cluster administrator/)
        yield* stage.until(() => stage.mirrored()?.phase === "failed")
        assert.deepInclude(stage.mirrored()?.cause, { reason, object })
      })
    )
  })

  it.effect("is requested again, and its run goes on once the cluster accepts it", () => {
    const stage = makeStage()
    stage.kube.refuse("Pod", 403, "Denied", 3)
    return stage.operate(
      Effect.gen(function* () {
        yield* stage.until(() => stage.row().phase === "provisioning")
        yield* TestClock.adjust("1 minute")
        yield* stage.until(() => stage.mirrored()?.message === "Serves.")
        assert.isUndefined(stage.mirrored()?.cause)
      })
    )
  })

  it("gives the GPUs of its run back at once", () => {
    assert.isTrue(givesClaimBack(refused(), 0))
    assert.isFalse(givesClaimBack(refused({ refusal: null }), 0))
    assert.isFalse(givesClaimBack(refused({ refusal: { ...refusal, kind: "download" } }), 0))
    const pool = makePool()
    const placed = { ...run, revision }
    const question = { run: { ...placed, id: otherDeployment, engineRun: otherDeployment }, podClass, classes: [podClass], reservations: [] }
    pool.note(placed, "provisioning")
    assert.strictEqual(pool.view(question).freeSlots, -1)
    pool.note(placed, "provisioning", false, { isRefused: true })
    assert.strictEqual(pool.view(question).freeSlots, 0)
  })

  it("of a serving model gives them back only at the deadline, and never fails the run", () => {
    const serving = observationOf("activated", { refusal }, { revision: { ...revision, status: "active" } })
    assert.deepStrictEqual([givesClaimBack(serving, refusalDeadline - 1), givesClaimBack(serving, refusalDeadline)], [false, true])
    assert.deepStrictEqual(
      decide(serving, refusalDeadline).actions.map(({ _tag }) => _tag),
      ["EnsurePod"]
    )
  })

  it("fails its run sooner if the serving revision gave up its GPUs for it", () => {
    const failsAt = (observation: Observation, now: number) => decide(observation, now).message.startsWith("container_blocked: ")
    const replacing = refused({}, { replaces: true })
    assert.deepStrictEqual(
      [
        failsAt(replacing, refusalDeadlineOfReplacement - 1),
        failsAt(replacing, refusalDeadlineOfReplacement),
        failsAt(refused(), refusalDeadlineOfReplacement)
      ],
      [false, true, false]
    )
    assert.strictEqual(decide(refused(), 0).requeueAt, refusalDeadline)
  })

  it("no longer counts once the run does something else", () => {
    const decision = decide(refused({ refusal: null }), 0)
    assert.deepStrictEqual(endRefused(refused(), { ...decision, actions: [] }, refusalDeadline), { ...decision, actions: [] })
  })

  it("of a download fails its run with the code of downloads", () => {
    const observation = observationOf("materializing", { refusal: { ...refusal, kind: "download", object: "Job/x" } })
    assert.match(decide(observation, refusalDeadline).message, /^download_failed: The cluster refused the Job of the download for 10 minutes/)
  })
})
