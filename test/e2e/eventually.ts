import { Effect } from "effect"

/** Looks until what is seen holds, and gives it; dies after two minutes, and says what was seen last. A bound against a test that hangs: nothing is timed by it. */
export const eventually = <A, E, R>(what: string, look: Effect.Effect<A, E, R>, holds: (seen: A) => boolean): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let last: A | undefined
    return Effect.gen(function* () {
      for (;;) {
        const seen = yield* look
        last = seen
        if (holds(seen)) return seen
        yield* Effect.sleep("40 millis")
      }
    }).pipe(
      Effect.timeoutOrElse({ duration: "2 minutes", orElse: () => Effect.die(new Error(`${what}: not after two minutes. Last seen: ${JSON.stringify(last)}`)) })
    )
  })
