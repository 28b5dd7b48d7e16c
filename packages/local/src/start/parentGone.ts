import { Effect, Schedule } from "effect"

/** The pipe that our parent holds at our standard input closes, where it said that it holds one (`SEATRIAL_PARENT_PIPE=1`). */
const pipeClosed = Effect.callback<void>((resume) => {
  process.stdin.resume()
  process.stdin.once("end", () => resume(Effect.void)).once("error", () => resume(Effect.void))
})

/** The terminal is closed. */
const hangUp = Effect.callback<void>((resume) => {
  const gone = () => resume(Effect.void)
  process.once("SIGHUP", gone)
  return Effect.sync(() => {
    process.off("SIGHUP", gone)
  })
})

const npm = process.ppid
/** npm, which runs us, was ended by itself: it passes no signal on then, and the system tells nobody of a lost parent. */
const npmGone = Effect.sync(() => process.ppid !== npm).pipe(Effect.repeat({ schedule: Schedule.spaced("1 second"), until: (gone) => gone }), Effect.asVoid)

/** Ends when whoever started us is gone; for the rest of us that is the same as Ctrl-C. */
export const parentGone: Effect.Effect<void> = Effect.raceAllFirst([
  hangUp,
  ...(process.env.SEATRIAL_PARENT_PIPE === "1" ? [pipeClosed] : []),
  ...(process.env.npm_lifecycle_event === "start" ? [npmGone] : [])
])
