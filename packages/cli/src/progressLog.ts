import { type FetchProgress, makeSpeedMeter, progressLine } from "@seatrial/hub"
import { Clock, Console, Effect, Schedule } from "effect"

/** Logs once a minute what an effect is waiting for, until it ends. */
export const logWaiting = (what: string) => {
  const log = Effect.forever(Effect.delay(Console.log(`still waiting for ${what}`), "1 minute"))
  return <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => Effect.raceFirst(effect, log)
}

/**
 * Logs progress at the start and then every five seconds if it has changed, until the scope closes. `report` logs it
 * immediately.
 */
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
