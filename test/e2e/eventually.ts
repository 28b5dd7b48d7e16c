import { Effect } from "effect"

/** A bound against a test that hangs, on whatever machine: nothing is timed by it. */
const bound = 300_000
/** A wait that takes longer is told of in the log. */
const long = 20_000

/** Looks until what is seen holds, and gives it; dies after five minutes, and says what was seen last. */
export const eventually = <A, E, R>(what: string, look: Effect.Effect<A, E, R>, holds: (seen: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const begun = performance.now()
    let last: A | undefined
    let told = false
    return Effect.gen(function* () {
      for (;;) {
        const seen = yield* look
        last = seen
        const waited = performance.now() - begun
        if (told && holds(seen)) yield* Effect.logInfo(`${what}: after ${Math.round(waited / 1_000)} s`)
        if (holds(seen)) return seen
        if (!told && waited > long) {
          told = true
          yield* Effect.logWarning(`${what}: not yet after ${long / 1_000} s. Last seen: ${JSON.stringify(seen)}`)
        }
        yield* Effect.sleep("40 millis")
      }
    }).pipe(
      Effect.timeoutOrElse({
        duration: bound,
        orElse: () => Effect.die(new Error(`${what}: not after ${bound / 1_000} seconds. Last seen: ${JSON.stringify(last)}`))
      })
    )
  })
