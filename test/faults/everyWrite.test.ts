import { assert, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { openLane } from "./Lane.ts"
import { playDeath } from "./playDeath.ts"
import { serveFirst } from "./serveFirst.ts"

const seeds = Number(process.env.SEATRIAL_FAULT_SEEDS ?? 2)
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const lanes = Number(process.env.SEATRIAL_FAULT_LANES ?? 4)

interface Death {
  readonly seed: number
  readonly at: number
  readonly made: boolean
}

it.live(
  `an operator killed before and after each of its writes, ${seeds} seeds each from ${first}: the next one brings everything to its right end`,
  () =>
    Effect.gen(function* () {
      const failed: Array<string> = []
      const killed = new Map<string, number>()
      // A seed's writes are known once it was played; until then each lane takes seeds, then deaths.
      const left: Array<Death> = Array.from({ length: seeds }, (_, which) => ({ seed: first + which, at: 0, made: false }))
      const lane = Effect.gen(function* () {
        const opened = yield* openLane
        const serving = yield* serveFirst(opened)
        for (let next = left.shift(); next !== undefined; next = left.shift()) {
          const { at, made, seed } = next
          const exit = yield* Effect.exit(playDeath(opened, serving, next))
          const name = `seed ${seed}, killed ${made ? "after" : "before"} write ${at}`
          if (Exit.isFailure(exit)) {
            failed.push(`${name}: ${Cause.pretty(exit.cause)}`)
            yield* Effect.logError(`${name}\n${opened.said()}`, exit.cause)
            // What follows on this lane would only tell of the same again.
            return
          }
          const { story, writes } = exit.value
          yield* Effect.logInfo(`${name}: ${story}`)
          // A death changes what is written after it, and there may be one more or less: a few beyond the last are tried too.
          if (at === 0) {
            yield* Effect.logInfo(`seed ${seed} makes ${writes.length} writes: ${writes.join(", ")}`)
            for (let write = 1; write <= writes.length; write++) left.push({ seed, at: write, made: false }, { seed, at: write, made: true })
          } else if (writes[at - 1] !== undefined) {
            const what = `${made ? "after" : "before"} ${writes[at - 1]}`
            killed.set(what, (killed.get(what) ?? 0) + 1)
          }
        }
      }).pipe(Effect.scoped)
      yield* Effect.all(
        Array.from({ length: lanes }, () => lane),
        { concurrency: "unbounded" }
      )
      yield* Effect.logInfo([...killed].map(([what, times]) => `${what}: ${times}`).join("\n"))
      assert.deepStrictEqual(failed, [])
      assert.isAbove(killed.size, 30)
    }),
  3_600_000
)
