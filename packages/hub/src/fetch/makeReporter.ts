import { Effect, Fiber, Queue, type Scope } from "effect"
import type { FetchProgress } from "./FetchProgress.ts"

/** Counts the bytes of a download or copy, and reports them as fast as the receiver takes reports. */
export interface Reporter {
  readonly add: (bytes: number) => void
  /** Sets the number of existing bytes and reports it. */
  readonly reset: (bytes: number) => Effect.Effect<void>
  /** Ends the reports with one of all bytes. */
  readonly complete: Effect.Effect<void>
}

/** Starts the reports of a transfer of `totalBytes`. They end with the scope. */
export const makeReporter = Effect.fnUntraced(function* (
  totalBytes: number,
  onProgress: (progress: FetchProgress) => Effect.Effect<void>
): Effect.fn.Return<Reporter, never, Scope.Scope> {
  let bytes = 0
  const progressed = yield* Queue.sliding<void>(1)
  const report = Effect.suspend(() => onProgress({ bytes, totalBytes, waiting: false }))
  const reporting = yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(progressed), report)))
  return {
    add: (more) => {
      bytes += more
      Queue.offerUnsafe(progressed, undefined)
    },
    reset: (present) =>
      Effect.suspend(() => {
        bytes = present
        return report
      }),
    complete: Effect.andThen(
      Fiber.interrupt(reporting),
      Effect.suspend(() => onProgress({ bytes: totalBytes, totalBytes, waiting: false }))
    )
  }
})
