import { Effect, Schedule } from "effect"

/** Completes when the pipe at the standard input closes, if the parent announced one (`SEATRIAL_PARENT_PIPE=1`). */
const pipeClosed = Effect.callback<void>((resume) => {
  process.stdin.resume()
  process.stdin.once("end", () => resume(Effect.void)).once("error", () => resume(Effect.void))
})

/** The terminal was closed. */
const hangUp = Effect.callback<void>((resume) => {
  const gone = () => resume(Effect.void)
  process.once("SIGHUP", gone)
  return Effect.sync(() => {
    process.off("SIGHUP", gone)
  })
})

const npm = process.ppid
/** A killed npm passes no signal on, and the system does not report a lost parent. */
const npmGone = Effect.sync(() => process.ppid !== npm).pipe(Effect.repeat({ schedule: Schedule.spaced("1 second"), until: (gone) => gone }), Effect.asVoid)

/** Completes when the parent process is gone, which has the same effect as Ctrl-C. */
export const parentGone: Effect.Effect<void> = Effect.raceAllFirst([
  hangUp,
  ...(process.env.SEATRIAL_PARENT_PIPE === "1" ? [pipeClosed] : []),
  ...(process.env.npm_lifecycle_event === "start" ? [npmGone] : [])
])
