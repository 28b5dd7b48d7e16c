import { Effect } from "effect"

/** Milliseconds after which a hanging test fails. It is generous, because it measures nothing. */
const timeoutMillis = 600_000
/** Milliseconds after which a wait is logged. */
const logAfterMillis = 20_000

/** Milliseconds until the next read: a tenth of the time so far, at most 250, and at least twice the time of a costly read, so that reads leave the processor to the programs. */
const pauseOf = (waitedMillis: number, readMillis: number) => Math.max(40, Math.min(waitedMillis / 10, 250), Math.min(readMillis * 2, 1_000))

/** Polls until a value satisfies the condition, and returns it. Dies with the last value after ten minutes. */
export const eventually = <A, E, R>(what: string, read: Effect.Effect<A, E, R>, holds: (value: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const startedAt = performance.now()
    let last: A | undefined
    let isLogged = false
    return Effect.gen(function* () {
      for (;;) {
        const readAt = performance.now()
        const value = yield* read
        last = value
        const now = performance.now()
        const waitedMillis = now - startedAt
        if (isLogged && holds(value)) yield* Effect.logInfo(`${what}: after ${Math.round(waitedMillis / 1_000)} s`)
        if (holds(value)) return value
        if (!isLogged && waitedMillis > logAfterMillis) {
          isLogged = true
          yield* Effect.logWarning(`${what}: not yet after ${logAfterMillis / 1_000} s. Last value: ${JSON.stringify(value)}`)
        }
        yield* Effect.sleep(pauseOf(waitedMillis, now - readAt))
      }
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Effect.die(new Error(`${what}: not after ${timeoutMillis / 1_000} seconds. Last value: ${JSON.stringify(last)}`))
      })
    )
  })
