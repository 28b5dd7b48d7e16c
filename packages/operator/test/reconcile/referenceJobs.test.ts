import { assert, describe, it } from "@effect/vitest"
import { Commit, DeploymentId } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Effect, Option } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { otherDeployment, revision, run } from "../observations.ts"
import { computes, fails, jobsOf, type Stage, serves, stageWith, waitsForNode } from "./referenceStage.ts"

const other: Run = { ...run, id: otherDeployment, engineRun: otherDeployment, orgSlug: "other" }
const created = ({ writes }: Stage) => writes.filter((write) => write.startsWith("create Job reference-")).length
const screened = (stage: Stage) => stage.rows().every((row) => row.revision !== null)

/** Runs of an organization, each of another commit, which wait for GPUs. */
const runsOf = (organization: string, from: number, count: number): ReadonlyArray<Run> =>
  Array.from({ length: count }, (_, index) => {
    const id = DeploymentId.make(`dep_${String(from + index).padStart(26, "0")}`)
    return { ...run, id, engineRun: id, orgSlug: organization }
  })

/** The Jobs of references in the metrics, by state, and how many have ended. */
const shown = Effect.map(PrometheusMetrics.format(), (text) => ({
  ...Object.fromEntries([...text.matchAll(/^seatrial_operator_reference_jobs\{state="(\w+)"\} (\d+)$/gm)].map(([, state, count]) => [state, Number(count)])),
  ended: Object.fromEntries(
    [...text.matchAll(/^seatrial_operator_references_total\{outcome="(\w+)"\} (\d+)$/gm)].map(([, outcome, count]) => [outcome, Number(count)])
  )
}))

describe("the Job of a reference that several runs use", () => {
  it.effect("goes on for another organization, and is deleted with its last run", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          stage.add(other)
          yield* stage.until(() => jobsOf(stage).length === 1 && screened(stage))
          stage.cancel(0)
          yield* stage.until(() => stage.released() > 0)
          assert.strictEqual(jobsOf(stage).length, 1)
          stage.cancel(0, otherDeployment)
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
      assert.strictEqual(created(stage), 1)
    })
  })

  it.effect("is deleted if the run that used it is gone from the database", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => jobsOf(stage).length === 1)
          stage.change((row) => row)
          stage.forget()
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
    })
  })

  it.effect("is deleted if its run was cancelled or removed while no operator ran", () =>
    Effect.gen(function* () {
      for (const end of ["cancelled", "removed"] as const) {
        const stage = stageWith()
        yield* stage.operate(stage.until(() => jobsOf(stage).length === 1))
        if (end === "cancelled") stage.cancelUnheard(0)
        else stage.forget()
        yield* stage.operate(stage.until(() => jobsOf(stage).length === 0))
      }
    })
  )

  it.effect("goes on after a restart of the operator, even if a cancelled run that used it comes first", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          stage.add(other)
          yield* stage.until(() => jobsOf(stage).length === 1 && screened(stage))
        })
      )
      stage.cancelUnheard(0)
      const isOtherRead = () => stage.reads.includes(otherDeployment)
      stage.reads.length = 0
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.released() > 0 && isOtherRead())
          yield* Effect.forEach(Array.from({ length: 100 }), () => Effect.yieldNow)
          assert.strictEqual(jobsOf(stage).length, 1)
          stage.cancel(0, otherDeployment)
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
      assert.strictEqual(created(stage), 1)
    })
  })
})

describe("a run whose passes fail after a restart of the operator", () => {
  const broken: Run = { ...run, id: DeploymentId.make(`dep_${"7".repeat(26)}`), orgSlug: "third" }
  /** Restarts the operator after the run of a Job was cancelled, while a run cannot be read because of that. */
  const restart = Effect.fnUntraced(function* (stage: Stage, failure: unknown) {
    yield* stage.operate(stage.until(() => jobsOf(stage).length === 1))
    stage.cancelUnheard(0)
    stage.add(broken)
    stage.reads.length = 0
    stage.setAfterRead(Effect.suspend(() => (stage.reads.at(-1) === broken.id ? Effect.die(failure) : Effect.void)))
  })
  const attempts = (stage: Stage) => stage.reads.filter((id) => id === broken.id).length

  it.effect("does not stop the deletion of a Job that no run uses", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* restart(stage, "the row cannot be decoded")
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.released() > 0 && attempts(stage) > 0)
          assert.lengthOf(jobsOf(stage), 1)
          yield* TestClock.adjust("5 seconds")
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
    })
  })

  it.effect("may use its Job if Postgres is away", () => {
    const stage = stageWith()
    return Effect.gen(function* () {
      yield* restart(stage, new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: "closed" }) }))
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(() => stage.released() > 0 && attempts(stage) > 0)
          yield* Effect.forEach(Array.from({ length: 10 }), () => TestClock.adjust("1 minute"))
          assert.isAbove(attempts(stage), 5)
          assert.lengthOf(jobsOf(stage), 1)
          stage.setAfterRead(Effect.void)
          const before = attempts(stage)
          yield* TestClock.adjust("2 minutes")
          yield* stage.until(() => attempts(stage) > before)
          assert.lengthOf(jobsOf(stage), 1)
          stage.cancel(0, broken.id)
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
    })
  })
})

describe("the Job of a reference that the cluster ended", () => {
  it.effect("is counted once, stores no cause, delays no trial, and is not created again at once", () => {
    const stage = stageWith()
    stage.setReferenceStory(fails(stage, 137, "Error"))
    return Effect.gen(function* () {
      const before = (yield* shown).ended
      yield* stage.operate(
        Effect.gen(function* () {
          yield* stage.until(serves(stage))
          assert.deepStrictEqual([created(stage), jobsOf(stage).length, stage.noReference()], [1, 1, null])
          stage.forget()
          stage.add({ ...run, phase: "cancelled", endedAt: 0 })
          yield* stage.until(() => jobsOf(stage).length === 0)
          yield* Effect.forEach(Array.from({ length: 100 }), () => Effect.yieldNow)
        })
      )
      const { not_started: notStarted = 0, unused = 0 } = (yield* shown).ended
      assert.deepStrictEqual([notStarted - (before.not_started ?? 0), unused - (before.unused ?? 0)], [1, 1])
    })
  })
})

const commitOf = (id: Run["id"]) => Commit.make(Buffer.from(id).toString("hex").slice(-40))
const crowd = (runs: ReadonlyArray<Run>) => {
  const stage = stageWith()
  stage.setFacts((id) => ({ ...revision.facts, commit: commitOf(id) }))
  stage.cancelUnheard(0)
  return { stage, begin: Effect.sync(() => runs.forEach(stage.add)) }
}

describe("the number of Jobs of references", () => {
  it.effect("is limited for an organization, and no other organization waits for it", () => {
    const { begin, stage } = crowd([...runsOf("many", 1, 6), ...runsOf("few", 11, 1)])
    return Effect.gen(function* () {
      yield* stage.operate(
        Effect.gen(function* () {
          yield* begin
          yield* stage.until(() => jobsOf(stage).length === 3 && stage.rows().every(({ phase }) => phase !== "screening" && phase !== "materializing"))
          yield* Effect.forEach(Array.from({ length: 500 }), () => Effect.yieldNow)
          assert.strictEqual(jobsOf(stage).length, 3)
          assert.deepInclude(yield* shown, { running: 3, unplaced: 0, waiting: 4 })
        })
      )
    })
  })

  it.effect("is limited in all, and a run gets its Job when another Job ends", () => {
    const { begin, stage } = crowd([...runsOf("a", 1, 3), ...runsOf("b", 11, 3), ...runsOf("c", 21, 3)])
    let most = 0
    stage.kube.onWrite(() => {
      most = Math.max(most, jobsOf(stage).filter((job) => Option.getOrUndefined(stage.kube.find("Job", job))?.status === undefined).length)
    })
    return Effect.gen(function* () {
      const { ended } = yield* shown
      yield* stage.operate(
        Effect.gen(function* () {
          yield* begin
          for (let ended = 0; ended < 9; ended++) {
            yield* stage.until(() => created(stage) === Math.min(9, 4 + ended) && jobsOf(stage).length === Math.min(4, 9 - ended))
            fails(stage, 137, "OOMKilled")(jobsOf(stage)[0] ?? "")
          }
          yield* stage.until(() => jobsOf(stage).length === 0)
        })
      )
      assert.isAtMost(most, 4)
      assert.strictEqual((yield* shown).ended.out_of_memory, (ended.out_of_memory ?? 0) + 9)
    })
  })
})

describe("the Job of a reference that no node has room for", () => {
  const minutes = (count: number) => Effect.forEach(Array.from({ length: count }), () => TestClock.adjust("1 minute"), { discard: true })

  it.effect("keeps its place for five minutes, then gives it to a run that waits for one, and gets a later one", () => {
    const { begin, stage } = crowd([...runsOf("a", 1, 2), ...runsOf("b", 11, 2), ...runsOf("c", 21, 1)])
    stage.setReferenceStory(waitsForNode(stage))
    return Effect.gen(function* () {
      const { ended } = yield* shown
      yield* stage.operate(
        Effect.gen(function* () {
          yield* begin
          yield* stage.until(() => jobsOf(stage).length === 4)
          yield* minutes(4)
          const first = jobsOf(stage)
          stage.setReferenceStory(computes(stage))
          yield* minutes(2)
          assert.deepStrictEqual([created(stage), jobsOf(stage).length], [5, 4])
          assert.strictEqual((yield* shown).ended.yielded, (ended.yielded ?? 0) + 1)
          const [placed = ""] = jobsOf(stage).filter((job) => !first.includes(job))
          fails(stage, 137, "OOMKilled")(placed)
          yield* stage.until(() => created(stage) === 6)
          assert.sameMembers(
            jobsOf(stage).filter((job) => job !== placed),
            first
          )
        })
      )
    })
  })

  it.effect("keeps its place if another Job was deleted for the only run that waits, and the watch is late", () => {
    const { begin, stage } = crowd([...runsOf("a", 1, 2), ...runsOf("b", 11, 2), ...runsOf("c", 21, 1)])
    stage.setReferenceStory(waitsForNode(stage))
    return stage.operate(
      Effect.gen(function* () {
        yield* begin
        yield* stage.until(() => jobsOf(stage).length === 4)
        yield* minutes(4)
        stage.kube.beLate("Job")
        yield* minutes(2)
        assert.deepStrictEqual([created(stage), jobsOf(stage).length], [4, 3])
        stage.kube.tellLate("Job")
        yield* stage.until(() => created(stage) === 5)
        assert.lengthOf(jobsOf(stage), 4)
      })
    )
  })

  it.effect("keeps its place while no run waits for it", () => {
    const { begin, stage } = crowd(runsOf("a", 1, 2))
    stage.setReferenceStory(waitsForNode(stage))
    return stage.operate(
      Effect.gen(function* () {
        yield* begin
        yield* stage.until(() => jobsOf(stage).length === 2)
        yield* minutes(60)
        assert.deepStrictEqual([created(stage), jobsOf(stage).length], [2, 2])
        // Another organization has more runs from now on than places are left.
        for (const each of runsOf("b", 11, 3)) stage.add({ ...each, phaseSince: 3_600_000 })
        yield* stage.until(() => created(stage) === 5)
        assert.lengthOf(jobsOf(stage), 4)
      })
    )
  })

  it.effect("takes turns with others of its kind, at most one in 20 minutes", () => {
    const { begin, stage } = crowd(runsOf("a", 1, 3))
    // No trial begins.
    stage.kube.add("Node", "node-1", { status: { allocatable: { "nvidia.com/gpu": "0" }, conditions: [{ type: "Ready", status: "True" }] } })
    let minute = 0
    stage.setReferenceStory(waitsForNode(stage, () => minute * 60_000))
    return stage.operate(
      Effect.gen(function* () {
        yield* begin
        yield* stage.until(() => jobsOf(stage).length === 2)
        for (minute = 1; minute <= 120; minute++) yield* TestClock.adjust("1 minute")
        const counts = new Map<string, number>()
        for (const write of stage.writes.filter((each) => each.startsWith("create Job reference-"))) counts.set(write, (counts.get(write) ?? 0) + 1)
        // Of three Jobs two have a place. Each keeps its place for longer than five minutes, and rests for 15.
        assert.deepStrictEqual(
          [...counts.values()].sort((one, other) => one - other),
          [3, 3, 4]
        )
      })
    )
  })
})
