import { RateLimited, Unavailable } from "@seatrial/api"
import { Clock, Effect, Random, Result } from "effect"
import { Unreachable } from "./failures.ts"

/** How often and how long an operation is tried. Times in milliseconds. */
export interface RetryPolicy {
  /** Tries in all, the first one included. */
  readonly attempts: number
  /** The first pause; each further one is twice as long, up to `longestPause`. A pause is between half of that and all of it. */
  readonly firstPause: number
  readonly longestPause: number
  /** How long one try may take. */
  readonly attemptTimeout: number
  /** From the first try on, pauses included: a pause that would end later is not begun. */
  readonly totalTime: number
}

export const defaultRetry: RetryPolicy = { attempts: 5, firstPause: 200, longestPause: 10_000, attemptTimeout: 70_000, totalTime: 120_000 }

/** The least time to wait before the next try, in milliseconds; undefined where another try would change nothing. */
export const minimumPause = (failure: unknown): number | undefined => {
  if (failure instanceof RateLimited || failure instanceof Unavailable) return failure.retryAfter * 1000
  if (failure instanceof Unreachable) return (failure.retryAfter ?? 0) * 1000
  return undefined
}

/** Tries again what failed in passing: a broken or refused connection, 429 and 503, never earlier than `Retry-After` allows. Only for what may be done twice. */
export const retrying =
  (policy: RetryPolicy) =>
  <A, E, R>(once: Effect.Effect<A, E | Unreachable, R>): Effect.Effect<A, E | Unreachable, R> =>
    Effect.gen(function* () {
      const deadline = (yield* Clock.currentTimeMillis) + policy.totalTime
      let pause = policy.firstPause
      for (let attempt = 1; ; attempt++) {
        const left = deadline - (yield* Clock.currentTimeMillis)
        const duration = Math.max(1, Math.min(policy.attemptTimeout, left))
        const tried = yield* once.pipe(
          Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(new Unreachable({ message: `No answer came within ${Math.ceil(duration / 1000)} s.` })) }),
          Effect.result
        )
        if (Result.isSuccess(tried)) return tried.success
        const least = minimumPause(tried.failure)
        if (least === undefined || attempt >= policy.attempts) return yield* Effect.fail(tried.failure)
        // Those that were refused together must not come back together.
        const delay = least + pause * (0.5 + 0.5 * (yield* Random.next))
        if ((yield* Clock.currentTimeMillis) + delay >= deadline) return yield* Effect.fail(tried.failure)
        yield* Effect.sleep(delay)
        pause = Math.min(policy.longestPause, pause * 2)
      }
    })
