import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import { openLane } from "./Lane.ts"
import { playSchedule } from "./playSchedule.ts"
import { serveFirst } from "./serveFirst.ts"

const count = Number(process.env.SEATRIAL_FAULT_SCHEDULES ?? 50)
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const lanes = Math.min(count, Number(process.env.SEATRIAL_FAULT_LANES ?? 4))

const lane = (which: number) =>
  Effect.gen(function* () {
    const opened = yield* openLane
    const serving = yield* serveFirst(opened)
    const failed: Array<string> = []
    for (let seed = first + which; seed < first + count; seed += lanes) {
      const [took, exit] = yield* Effect.timed(Effect.exit(playSchedule(opened, serving, seed)))
      if (Exit.isSuccess(exit)) yield* Effect.logInfo(`seed ${seed}: ${exit.value}; ${Math.round(Duration.toSeconds(took))} s`)
      else {
        failed.push(opened.failure(`seed ${seed}`, exit.cause))
        yield* Effect.logError(`seed ${seed}\n${opened.operatorLines()}`, exit.cause)
        // Later failures would have the same cause.
        break
      }
    }
    return failed
  }).pipe(Effect.scoped)

it.live(
  `${count} schedules of faults from seed ${first}: every run ends as expected, no object is left over, and every request is answered`,
  () =>
    Effect.gen(function* () {
      const failed = yield* Effect.forEach(
        Array.from({ length: lanes }, (_, which) => which),
        lane,
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(failed.flat(), [])
    }),
  3_600_000
)
