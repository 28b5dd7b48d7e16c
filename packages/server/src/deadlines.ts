import { Clock, Duration, Effect, type Fiber } from "effect"

/** A request that is under way. */
export interface Running {
  readonly fiber: Fiber.Fiber<unknown, unknown>
  /** Clock milliseconds. */
  readonly until: number
  late: boolean
}

/**
 * Bounds how long requests take: those that take longer than `limit` are interrupted (at most a tenth of it, and a second, later). All have the same time, so the first to begin is
 * the first to be late, and one fibre that looks at those will do. A timer and a race for each request would cost more than many a request.
 */
export const makeDeadlines = Effect.fnUntraced(function* (limit: Duration.Duration) {
  const clock = yield* Clock.Clock
  const millis = Duration.toMillis(limit)
  // In the order in which they began.
  const running = new Set<Running>()

  const interruptLate = Effect.sync(() => {
    const now = clock.currentTimeMillisUnsafe()
    for (const request of running) {
      if (request.until > now) return
      running.delete(request)
      request.late = true
      request.fiber.interruptUnsafe()
    }
  })
  yield* interruptLate.pipe(Effect.delay(Duration.millis(Math.min(1_000, millis / 10))), Effect.forever, Effect.forkScoped)

  return {
    /** For the fibre that a request is handled in. It has to end it. */
    begin: (fiber: Running["fiber"]): Running => {
      const request: Running = { fiber, until: clock.currentTimeMillisUnsafe() + millis, late: false }
      running.add(request)
      return request
    },
    end: (request: Running): void => {
      running.delete(request)
    }
  }
})
