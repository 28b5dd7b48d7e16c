import { assert, describe, it } from "@effect/vitest"
import type { MoveAnswers } from "@seatrial/store"
import { Runs } from "@seatrial/store"
import { Effect, Layer, Option } from "effect"
import { type KnownMove, observeMove } from "../../src/gather/observeMove.ts"
import type { ObservedPod } from "../../src/observation/ObservedPod.ts"
import { pod, revision, run } from "../observations.ts"

const moving = { ...run, phase: "activated" as const, earlier: 1, engineRun: run.id }
const counter = (key: string, isEarlier: boolean, answered: number, failed: number) => ({ key, isEarlier, answered, failed })

/** The observed move after each report of the gateways, a second apart. */
const observe = (
  reports: ReadonlyArray<MoveAnswers["counters"] | null>,
  serving: ReadonlyArray<number> = [],
  pods: ReadonlyArray<Partial<ObservedPod>> = []
) => {
  const memory = { moves: new Map<typeof run.id, KnownMove>() }
  let report: Option.Option<MoveAnswers> = Option.none()
  const runs = Layer.mock(Runs)({ moveAnswers: () => Effect.sync(() => report) })
  return Effect.forEach(reports, (counters, index) => {
    report = counters === null ? Option.none() : Option.some({ to: revision.id, counters })
    const endpoints = Array.from({ length: serving[index] ?? 1 }, (_, engine) => ({ url: `http://127.0.0.${engine}:1`, pod: `pod-${engine}`, reachable: true }))
    return observeMove(memory, { ...moving, endpoints }, [{ ...pod, ...pods[index] }], 1_000 * (index + 1))
  }).pipe(Effect.provide(runs))
}

describe("the requests that both revisions answer during a move", () => {
  it.effect("count over all gateways, also if a gateway is gone for a while or begins anew", () =>
    Effect.gen(function* () {
      const looks = yield* observe([
        [counter("g1 new", false, 5, 1), counter("g1 old", true, 500, 9)],
        [counter("g1 new", false, 7, 2), counter("g1 old", true, 510, 9), counter("g2 new", false, 100, 50)],
        [counter("g2 new", false, 101, 51), counter("g1 old", true, 520, 10)],
        [counter("g1 new", false, 8, 2), counter("g2 new", false, 0, 0)]
      ])
      assert.deepStrictEqual(
        looks.map((look) => [look?.own, look?.earlier]),
        [
          [
            { answered: 5, failed: 1 },
            { answered: 500, failed: 9 }
          ],
          [
            { answered: 107, failed: 52 },
            { answered: 510, failed: 9 }
          ],
          [
            { answered: 108, failed: 53 },
            { answered: 520, failed: 10 }
          ],
          [
            { answered: 109, failed: 53 },
            { answered: 520, failed: 10 }
          ]
        ]
      )
    })
  )

  it.effect("are forgotten when the move is over", () =>
    Effect.gen(function* () {
      const counters = (answered: number) => [counter("g new", false, answered, 0)]
      const looks = yield* observe([counters(1), counters(2), null, counters(9)])
      assert.deepStrictEqual(
        looks.map((look) => look?.own.answered ?? null),
        [1, 2, null, 9]
      )
    })
  )
})

describe("the time that engines of a new revision need to start", () => {
  it.effect("counts while one has its node, over its replacements, until one more serves", () =>
    Effect.gen(function* () {
      const [starts, waits, leaves, serves] = [{ ready: false }, { ready: false, scheduled: false }, { ready: false, deleting: true }, { ready: true }]
      const pods = [serves, starts, starts, waits, leaves, starts, starts, starts]
      const looks = yield* observe(
        pods.map(() => []),
        [1, 1, 1, 1, 1, 1, 2, 1],
        pods
      )
      assert.deepStrictEqual(
        looks.map((look) => look?.startingMillis),
        [0, 1_000, 2_000, 2_000, 2_000, 3_000, 0, 1_000]
      )
    })
  )
})
