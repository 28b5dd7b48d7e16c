import { assert, describe, it } from "@effect/vitest"
import { Decisions, type NewDecision } from "@seatrial/store"
import { Effect, Exit, Scope, Stream } from "effect"
import { ConnectionError, SqlError, UnknownError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { Action, act, by, type NamedDecision, wait } from "../../src/decide/Decision.ts"
import type { Observation } from "../../src/observation/Observation.ts"
import { makeDecisionRecorder } from "../../src/record/DecisionRecorder.ts"
import { observationOf, run } from "../observations.ts"

const acts = by("queued", act("Acts.", Action.EnsurePod({})))
const waits = by("queued", wait("Waits."))

/** A recorder in front of a store whose next answers a test chooses. */
const makeRig = Effect.fnUntraced(function* (keepDays = 14) {
  const rows: Array<NewDecision> = []
  const removed: Array<number> = []
  let answer: Effect.Effect<void, SqlError> = Effect.void
  const decisions = Decisions.of({
    record: (_, batch) =>
      Effect.andThen(
        answer,
        Effect.sync(() => void rows.push(...batch))
      ),
    removeOlder: (days) => Effect.sync(() => removed.push(days)),
    read: () => Stream.empty
  })
  const scope = yield* Scope.make()
  const recorder = yield* Scope.provide(makeDecisionRecorder({ decisions, build: "1", keepDays }), scope)
  const pass = (decision: NamedDecision, change: Partial<Observation> = {}, now = 0) =>
    recorder.record({ run, observation: observationOf("queued", { released: false, ...change }), decision, now })
  return {
    rows,
    removed,
    pass,
    recorder,
    close: Scope.close(scope, Exit.void),
    answer: (next: typeof answer) => {
      answer = next
    },
    /** The place of each record in its series, and what it holds. */
    shown: () => rows.map(({ observation, seq }) => `${seq} ${"set" in JSON.parse(observation) ? "changes" : "whole"}`)
  }
})

const written = TestClock.adjust("1 second")

describe("the record of decisions", () => {
  it.effect("holds the first observation as a whole and then only changes, of passes that act", () =>
    Effect.gen(function* () {
      const { pass, rows, shown } = yield* makeRig()
      pass(waits)
      pass(acts)
      pass(acts, { freeSlots: 5 })
      yield* written
      assert.deepStrictEqual(shown(), ["0 whole", "1 changes"])
      assert.deepStrictEqual(JSON.parse(rows[1]?.observation ?? ""), { set: [[["freeSlots"], 5]], unset: [] })
      assert.strictEqual(rows[0]?.series, rows[1]?.series)
    })
  )

  it.effect("leaves out a pass that repeats the one before, and shows when another rule begins to decide", () =>
    Effect.gen(function* () {
      const { pass, rows } = yield* makeRig()
      pass(acts)
      pass(acts)
      pass(waits)
      pass(by("waiting", wait("Waits.")))
      pass(by("waiting", wait("Still waits.")), { ahead: 3 })
      yield* written
      assert.deepStrictEqual(
        rows.map(({ rule }) => rule),
        ["queued", "waiting"]
      )
    })
  )

  it.effect("holds each change of the engines that the background work uses", () =>
    Effect.gen(function* () {
      const { pass, rows } = yield* makeRig()
      const running = { running: "boot" as const, ended: null }
      const engine = { boot: null, admission: null, elsewhere: false, outdated: false, sameStart: true, withdrawnAt: null, requests: null, pod: null }
      const compares = (...engines: ReadonlyArray<number>) => by("fleet", { ...wait("Compares."), work: "boot", engines })
      const runs = (...ordinals: ReadonlyArray<number>) => ({ engines: ordinals.map((ordinal) => ({ ...engine, ordinal, work: running })) })
      pass(compares(1))
      // It runs: nothing changes.
      pass(compares(1), runs(1))
      pass(compares(1, 2), runs(1))
      pass(compares(1, 2), runs(1, 2))
      yield* written
      assert.deepStrictEqual(
        rows.map(({ decision }) => JSON.parse(decision).engines),
        [[1], [1, 2]]
      )
    })
  )

  it.effect("begins a new series after a day", () =>
    Effect.gen(function* () {
      const { pass, shown } = yield* makeRig()
      pass(acts)
      pass(acts, { ahead: 1 }, 86_399_999)
      pass(acts, { ahead: 2 }, 86_400_000)
      yield* written
      assert.deepStrictEqual(shown(), ["0 whole", "1 changes", "0 whole"])
    })
  )

  it.effect("waits for a Postgres that does not answer, in its order, and loses nothing", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      rig.answer(Effect.fail(new SqlError({ reason: new ConnectionError({ cause: "away" }) })))
      rig.pass(acts)
      yield* written
      rig.pass(acts, { ahead: 1 })
      yield* written
      assert.deepStrictEqual(rig.shown(), [])
      rig.answer(Effect.void)
      yield* written
      assert.deepStrictEqual(rig.shown(), ["0 whole", "1 changes"])
    })
  )

  it.effect("drops what Postgres refuses, and holds the whole observation after that", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      rig.answer(Effect.fail(new SqlError({ reason: new UnknownError({ cause: "no such column" }) })))
      rig.pass(acts)
      yield* written
      rig.answer(Effect.void)
      rig.pass(acts, { ahead: 1 })
      yield* written
      assert.deepStrictEqual(rig.shown(), ["0 whole"])
    })
  )

  it.effect("drops records if too many wait, and holds the whole observation after that", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      rig.answer(Effect.fail(new SqlError({ reason: new ConnectionError({ cause: "away" }) })))
      for (let ahead = 0; ahead < 2_500; ahead++) rig.pass(acts, { ahead })
      rig.answer(Effect.void)
      yield* written
      assert.strictEqual(rig.rows.length, 2_000)
      rig.pass(acts, { ahead: 9_999 })
      yield* written
      assert.strictEqual(rig.shown().at(-1), "0 whole")
    })
  )

  it.effect("is written when the operator stops", () =>
    Effect.gen(function* () {
      const rig = yield* makeRig()
      rig.pass(acts)
      yield* rig.close
      assert.deepStrictEqual(rig.shown(), ["0 whole"])
    })
  )

  it.effect("is kept for its days and deleted every hour; with 0 days nothing is recorded", () =>
    Effect.gen(function* () {
      const kept = yield* makeRig(3)
      const off = yield* makeRig(0)
      off.pass(acts)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([kept.removed, off.removed, off.rows], [[4, 4], [0, 0], []])
    })
  )
})
