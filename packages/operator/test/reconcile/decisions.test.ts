import { assert, describe, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import type { NewDecision, StoredDecision } from "@seatrial/store"
import { Effect, Option, Schema, Stream } from "effect"
import { passesOf } from "../../src/record/history.ts"
import { replay } from "../../src/record/replay.ts"
import { makeStage } from "./stage.ts"

/** The row as it is read. */
const stored = ({ decision, observation, ...row }: NewDecision): StoredDecision => ({
  ...row,
  deploymentId: Schema.decodeSync(DeploymentId)(row.deploymentId),
  term: 1,
  at: row.decidedAt,
  build: "1",
  observation: JSON.parse(observation),
  decision: JSON.parse(decision)
})

describe("the records of a run", () => {
  const token = "hf_canary5c1d"

  it.effect("name the rule of each step, are decided again identically, and hold no hub token", () => {
    const stage = makeStage(Option.some(token))
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => stage.row().phase === "activated" && stage.mirrored()?.message === "Serves."))
      const passes = yield* Stream.runCollect(passesOf(Stream.fromIterable(stage.decided.map(stored))))
      const rules = passes.map(({ rule }) => rule)
      const steps = [
        "screening.readRepository",
        "screening.weightsMissing",
        "materializing.startDownload",
        "materializing.downloaded.freeGpus",
        "provisioning.createPod",
        "provisioning.running",
        "booting.ready",
        "checking.checking",
        "checking.checksPassed",
        "measuring.measured",
        "benchmarking.benchmarked",
        "activating.publish",
        "activating.reached",
        "activated.serving.serves"
      ]
      assert.deepStrictEqual(
        steps.filter((step) => !rules.includes(step)),
        [],
        rules.join("\n")
      )
      assert.deepStrictEqual(
        passes.map((pass) => replay(pass)._tag),
        passes.map(() => "Same")
      )
      assert.isAbove(passes.filter(({ seq }) => seq > 0).length, 10)
      assert.notInclude(JSON.stringify(stage.decided), token)
      assert.include(JSON.stringify(stage.writes), "Secret")
    })
  })

  it.effect("begin with the whole observation again when another operator takes over", () => {
    const stage = makeStage()
    return Effect.gen(function* () {
      yield* stage.operate(stage.until(() => stage.row().phase === "booting"))
      yield* stage.operate(stage.until(() => stage.row().phase === "activated"))
      const whole = stage.decided.filter(({ seq }) => seq === 0)
      assert.strictEqual(whole.length, 2)
    })
  })
})
