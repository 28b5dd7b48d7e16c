import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Exit } from "effect"
import { openLane } from "./Lane.ts"
import { playSchedule } from "./playSchedule.ts"
import { serveFirst } from "./serveFirst.ts"

const count = Number(process.env.SEATRIAL_FAULT_SCHEDULES ?? 50)
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const lanes = Math.min(count, Number(process.env.SEATRIAL_FAULT_LANES ?? 4))

/** What a lane checks after a schedule is all that it has recorded, so a lane that plays many becomes slow. */
const perLane = 20

/** Plays schedules in a lane until one fails. Returns the failures. */
const play = (seeds: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const opened = yield* openLane
    const serving = yield* serveFirst(opened)
    for (const seed of seeds) {
      const [took, exit] = yield* Effect.timed(Effect.exit(playSchedule(opened, serving, seed)))
      if (Exit.isSuccess(exit)) yield* Effect.logInfo(`seed ${seed}: ${exit.value}; ${Math.round(Duration.toSeconds(took))} s`)
      else {
        yield* Effect.logError(`seed ${seed}\n${opened.operatorLines()}`, exit.cause)
        return [opened.failure(`seed ${seed}`, exit.cause)]
      }
    }
    return []
  }).pipe(Effect.scoped)

const groups = Array.chunksOf(
  Array.makeBy(count, (index) => first + index),
  Math.min(perLane, Math.ceil(count / lanes))
)

it.live(
  `${count} schedules of faults from seed ${first}: every run ends as expected, no object is left over, and every request is answered`,
  () =>
    Effect.gen(function* () {
      const failed = yield* Effect.forEach(groups, play, { concurrency: lanes })
      assert.deepStrictEqual(failed.flat(), [])
    }),
  3_600_000
)
