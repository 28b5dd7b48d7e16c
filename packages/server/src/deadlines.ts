import { Clock, Duration, Effect, type Fiber } from "effect"

/** A request in flight. */
export interface RunningRequest {
  readonly fiber: Fiber.Fiber<unknown, unknown>
  /** Clock milliseconds. */
  readonly until: number
  isLate: boolean
}

/**
 * Interrupts requests that take longer than `limit`, at most the smaller of `limit / 10` and one second after it. All
 * requests have the same limit, so they become late in the order of arrival and one fiber can check the oldest ones. A
 * timer per request would cost more than most requests.
 */
export const makeDeadlines = Effect.fnUntraced(function* (limit: Duration.Duration) {
  const clock = yield* Clock.Clock
  const millis = Duration.toMillis(limit)
  // In order of arrival.
  const running = new Set<RunningRequest>()

  const interruptLate = Effect.sync(() => {
    const now = clock.currentTimeMillisUnsafe()
    for (const request of running) {
      if (request.until > now) return
      running.delete(request)
      request.isLate = true
      request.fiber.interruptUnsafe()
    }
  })
  yield* interruptLate.pipe(Effect.delay(Duration.millis(Math.min(1_000, millis / 10))), Effect.forever, Effect.forkScoped)

  return {
    /** Registers the fiber that handles a request. The caller must pass the result to `end`. */
    begin: (fiber: RunningRequest["fiber"]): RunningRequest => {
      const request: RunningRequest = { fiber, until: clock.currentTimeMillisUnsafe() + millis, isLate: false }
      running.add(request)
      return request
    },
    end: (request: RunningRequest): void => {
      running.delete(request)
    }
  }
})
