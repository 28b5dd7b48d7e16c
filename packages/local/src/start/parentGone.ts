import { Effect } from "effect"

/** Ends when the pipe that our parent holds at our standard input closes, where it said that it holds one (`SEATRIAL_PARENT_PIPE=1`); else never. */
export const parentGone: Effect.Effect<void> =
  process.env.SEATRIAL_PARENT_PIPE === "1"
    ? Effect.callback((resume) => {
        process.stdin.resume()
        process.stdin.once("end", () => resume(Effect.void)).once("error", () => resume(Effect.void))
      })
    : Effect.never
