import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit } from "effect"
import { type Lane, openLane } from "./Lane.ts"
import { type Death, playDeath } from "./playDeath.ts"
import { generalWrites, playGeneralDeath } from "./playGeneralDeath.ts"
import { type Serving, serveFirst } from "./serveFirst.ts"

const seeds = Number(process.env.SEATRIAL_FAULT_SEEDS ?? 2)
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const lanes = Number(process.env.SEATRIAL_FAULT_LANES ?? 4)
/** Writes between two deaths of one story; 0: each story has one death. */
const every = Number(process.env.SEATRIAL_FAULT_EVERY ?? 16)
/** More writes than any story has without a death. */
const most = 200
/** A seed ends after this many stories in a row that ended before the write of the death, because the number of writes varies. */
const enough = 3

it.live(
  `operators killed before and after each of their writes, ${seeds} seeds from ${first}: the next one finishes every run as expected`,
  () =>
    Effect.gen(function* () {
      const general = generalWrites.flatMap((what) =>
        [false, true].map((afterWrite) => ({
          name: `killed ${afterWrite ? "after" : "before"} ${what}`,
          seed: what,
          play: (lane: Lane, serving: Serving) => playGeneralDeath(lane, serving, what, afterWrite)
        }))
      )
      // The stories are ordered by write, so that each kind of story comes early.
      const ofRuns = Array.from({ length: every === 0 ? most : every }, (_, which) => which + 1).flatMap((at) =>
        Array.from({ length: seeds }, (_, which) => first + which).flatMap((seed) =>
          [false, true].map((afterWrite) => {
            const death: Death = { seed, at, afterWrite, every }
            return {
              name: `seed ${seed}, killed ${afterWrite ? "after" : "before"} write ${at}`,
              seed: `${seed} ${afterWrite}`,
              play: (lane: Lane, serving: Serving) => playDeath(lane, serving, death)
            }
          })
        )
      )
      const deaths = [...general, ...ofRuns]
      const failed: Array<string> = []
      const times = new Map<string, number>()
      const survived = new Map<string, number>()
      let played = 0
      const lane = Effect.gen(function* () {
        const opened = yield* openLane
        const serving = yield* serveFirst(opened)
        for (let death = deaths.shift(); death !== undefined; death = deaths.shift()) {
          const { name, play, seed } = death
          if ((survived.get(seed) ?? 0) >= enough) continue
          const [took, exit] = yield* Effect.timed(Effect.exit(play(opened, serving)))
          if (Exit.isFailure(exit)) {
            failed.push(opened.failure(name, exit.cause))
            yield* Effect.logError(`${name}\n${opened.operatorLines()}`, exit.cause)
            // Later failures on this lane would have the same cause.
            return
          }
          played++
          survived.set(seed, exit.value.killed.length > 0 ? 0 : (survived.get(seed) ?? 0) + 1)
          for (const what of exit.value.killed) times.set(what, (times.get(what) ?? 0) + 1)
          yield* Effect.logInfo(
            `${name}: ${exit.value.story}: ${exit.value.killed.join(", ")}; ${Math.round(Duration.toSeconds(took))} s; ${times.size} kinds so far`
          )
        }
      }).pipe(Effect.scoped)
      yield* Effect.forEach(
        Array.from({ length: Math.min(lanes, deaths.length) }, (_, which) => which),
        () => lane,
        { concurrency: "unbounded" }
      )
      yield* Effect.logInfo([`${played} stories`, ...[...times].map(([what, count]) => `killed ${what}: ${count}`)].join("\n"))
      assert.deepStrictEqual(failed, [])
      // One seed has one kind of story only.
      if (every > 0 && seeds > 1) assert.isAbove(times.size, 50, "some kinds of writes were never met")
    }),
  36_000_000
)
