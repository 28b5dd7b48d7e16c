import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { revision } from "../observations.ts"
import { computed, computes, fails, jobsOf, type Stage, serves, stageWith, succeeds, waitsForNode } from "./referenceStage.ts"
import { makeStage } from "./stage.ts"

/** The kinds of the work that was done. */
const worksOf = ({ worked }: Stage) => worked.map((work) => work.split(" ")[0])

/** The event about a missing reference with that code; undefined if there is none. */
const missingEvent = ({ kube }: Stage, code: string) => {
  const name = kube.names("Event").find((each) => each.endsWith(`.referencemissing.${code.replaceAll("_", "-")}`))
  return Option.getOrUndefined(kube.find("Event", name ?? ""))
}

describe("the reference of a commit", () => {
  for (const quantization of ["none", "mxfp4"]) {
    it.effect(`is computed by a Job while the engine starts, is stored, and the Job is deleted (quantization ${quantization})`, () => {
      const stage = stageWith(undefined, { ...revision.facts, config: { ...revision.facts.config, quantization } })
      stage.setReferenceStory(succeeds(stage))
      return Effect.gen(function* () {
        yield* stage.operate(stage.until(() => serves(stage)() && jobsOf(stage).length === 0))
        assert.deepStrictEqual(stage.references, [computed])
        assert.strictEqual(stage.writes.filter((write) => write.startsWith("create Job reference-")).length, 1)
        assert.isBelow(stage.writes.indexOf("add reference"), stage.writes.indexOf("record checks"))
      })
    })
  }

  it.effect("is computed by nobody if the class does not ask for it, or has no image with Python", () =>
    Effect.gen(function* () {
      for (const stage of [makeStage(), stageWith({})]) {
        yield* stage.operate(stage.until(serves(stage)))
        assert.isFalse(
          stage.writes.some((write) => write.includes("reference")),
          stage.writes.join()
        )
      }
    })
  )

  it.effect("is not computed for a commit that has one, nor for quantized files, and no trial waits", () =>
    Effect.gen(function* () {
      const known = stageWith()
      known.references.push(computed)
      const quantized = stageWith(undefined, { ...revision.facts, config: { ...revision.facts.config, quantization: "fp8" } })
      for (const stage of [known, quantized]) {
        yield* stage.operate(stage.until(serves(stage)))
        assert.isFalse(
          stage.writes.some((write) => write.includes("reference-")),
          stage.writes.join()
        )
      }
    })
  )

  const failures = [
    { exitCode: 137, reason: "OOMKilled", code: "out_of_memory" },
    { exitCode: 1, reason: "Error", code: "computation_failed" }
  ]
  for (const { code, exitCode, reason } of failures) {
    it.effect(`is remembered as ${code} if the computation ends so, is not tried again, and no trial waits for it`, () => {
      const stage = stageWith()
      stage.setReferenceStory(fails(stage, exitCode, reason))
      return Effect.gen(function* () {
        yield* stage.operate(stage.until(() => serves(stage)() && jobsOf(stage).length === 0))
        assert.strictEqual(stage.noReference(), code)
        assert.deepInclude(missingEvent(stage, code), { type: "Warning", reason: "ReferenceMissing" })
        assert.strictEqual(stage.writes.filter((write) => write.startsWith("create Job reference-")).length, 1)
      })
    })
  }

  it.effect("is missing with the program's code, or with one for everything else that it prints", () =>
    Effect.gen(function* () {
      for (const [log, code] of [
        ['{"not_applicable":"unknown_architecture"}\n', "unknown_architecture"],
        ['{"not_applicable":"Traceback (most recent call last)"}\n', "unreadable_result"],
        [`{"logprobs":[[0.5]],"continuations":[],"transformers":"5","torch":"2"}`, "unreadable_result"],
        [`{"logprobs":[[-1,-1]],"continuations":[],"transformers":"5","torch":"2"}`, "unreadable_result"],
        ["", "unreadable_result"]
      ] as const) {
        const stage = stageWith()
        stage.kube.setLog(() => log)
        stage.setReferenceStory(succeeds(stage))
        yield* stage.operate(stage.until(() => serves(stage)() && jobsOf(stage).length === 0))
        assert.deepStrictEqual([stage.references, stage.noReference()], [[], code], log)
      }
    })
  )

  it.effect("delays the end of the checks until the class's limit at most, and is kept if it comes later", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => worksOf(stage).includes("checking"))
          yield* TestClock.adjust("599 seconds")
          assert.deepStrictEqual([stage.row().phase, worksOf(stage).includes("comparing")], ["checking", false])
          yield* TestClock.adjust("2 seconds")
          yield* stage.until(() => stage.row().phase === "activated")
          const [job = ""] = jobsOf(stage)
          succeeds(stage)(job)
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
      assert.deepStrictEqual(stage.references, [computed])
      assert.strictEqual(worksOf(stage).filter((work) => work === "checking").length, 1)
    })
  })

  it.effect("is compared as soon as it is stored, without another run of the checks", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => worksOf(stage).includes("checking"))
          yield* TestClock.adjust("30 seconds")
          succeeds(stage)(jobsOf(stage)[0] ?? "")
          yield* stage.until(() => stage.row().phase === "activated")
        })
      )
      assert.deepStrictEqual(
        worksOf(stage).filter((work) => work === "checking" || work === "comparing"),
        ["checking", "comparing"]
      )
      assert.isBelow(stage.writes.indexOf("add reference"), stage.writes.indexOf("record checks"))
    })
  })

  it.effect("is awaited again after a restart of the operator, which repeats the checks", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.andThen(
          stage.until(() => worksOf(stage).includes("checking")),
          TestClock.adjust("30 seconds")
        )
      )
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => worksOf(stage).filter((work) => work === "checking").length === 2)
          succeeds(stage)(jobsOf(stage)[0] ?? "")
          yield* stage.until(() => stage.row().phase === "activated")
        })
      )
      assert.deepStrictEqual(stage.references, [computed])
    })
  })

  it.effect("is not awaited if its Job gets no node, and is kept if it is computed later", () => {
    const stage = stageWith()
    stage.setReferenceStory(waitsForNode(stage))
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => worksOf(stage).includes("checking"))
          yield* TestClock.adjust("31 seconds")
          yield* stage.until(() => stage.row().phase === "activated")
          assert.deepInclude(missingEvent(stage, "not_started"), { type: "Warning" })
          assert.strictEqual(jobsOf(stage).length, 1)
          succeeds(stage)(jobsOf(stage)[0] ?? "")
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
      assert.deepStrictEqual(stage.references, [computed])
    })
  })

  it.effect("is awaited if its Job gets a node while the trial waits for one", () => {
    const stage = stageWith()
    stage.setReferenceStory(waitsForNode(stage))
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => worksOf(stage).includes("checking"))
          yield* TestClock.adjust("20 seconds")
          computes(stage)(jobsOf(stage)[0] ?? "")
          yield* TestClock.adjust("300 seconds")
          assert.strictEqual(stage.row().phase, "checking")
          succeeds(stage)(jobsOf(stage)[0] ?? "")
          yield* stage.until(() => stage.row().phase === "activated")
        })
      )
      assert.isBelow(stage.writes.indexOf("add reference"), stage.writes.indexOf("record checks"))
    })
  })
})
