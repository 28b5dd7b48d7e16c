import { type FetchProgress, makeSpeedMeter, progressLine } from "@seatrial/hub"
import { Clock, Console, Effect, Schedule } from "effect"

/** Says once a minute what is waited for, as long as it lasts. */
export const tellingWaits = (what: string) => {
  const tell = Effect.forever(Effect.delay(Console.log(`still waits for ${what}`), "1 minute"))
  return <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => Effect.raceFirst(effect, tell)
}

/** Writes how far something is, at first and then every five seconds where that has changed, until the scope ends. `report` writes it now. */
export const makeProgressLog = Effect.gen(function* () {
  let progress: FetchProgress | null = null
  const meter = makeSpeedMeter()
  let last = ""
  const report = Effect.gen(function* () {
    if (progress === null) return
    const line = progressLine(meter(progress, yield* Clock.currentTimeMillis))
    if (line !== last) yield* Console.log(line)
    last = line
  })
  const onProgress = (now: FetchProgress) =>
    Effect.suspend(() => {
      const first = progress === null
      progress = now
      return first ? report : Effect.void
    })
  yield* Effect.forkScoped(Effect.repeat(report, Schedule.spaced("5 seconds")))
  return { onProgress, report }
})
