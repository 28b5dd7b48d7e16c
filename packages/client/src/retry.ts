import { RateLimited, Unavailable } from "@seatrial/api"
import { Clock, Effect, Random, Result } from "effect"
import { Unreachable } from "./failures.ts"

/** Limits for the attempts of an operation. Times are in milliseconds. */
export interface RetryPolicy {
  /** Maximum number of attempts, including the first. */
  readonly attempts: number
  /**
   * The first pause. Each further pause is twice as long, up to `longestPause`. The actual pause is random between half
   * and all of it.
   */
  readonly firstPause: number
  readonly longestPause: number
  /** Timeout of one attempt. */
  readonly attemptTimeout: number
  /** Limit of the total time, including pauses. A pause that would end later is not started. */
  readonly totalTime: number
}

export const defaultRetry: RetryPolicy = { attempts: 5, firstPause: 200, longestPause: 10_000, attemptTimeout: 70_000, totalTime: 120_000 }

/** The minimum time before the next attempt in milliseconds; undefined if another attempt cannot help. */
export const minimumPause = (failure: unknown): number | undefined => {
  if (failure instanceof RateLimited || failure instanceof Unavailable) return failure.retryAfter * 1000
  if (failure instanceof Unreachable) return (failure.retryAfter ?? 0) * 1000
  return undefined
}

/**
 * Retries transient failures: a broken or refused connection, 429 and 503, never earlier than `Retry-After`. Use it
 * only for operations that are safe to repeat.
 */
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
          Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(new Unreachable({ message: `No response within ${Math.ceil(duration / 1000)} s.` })) }),
          Effect.result
        )
        if (Result.isSuccess(tried)) return tried.success
        const least = minimumPause(tried.failure)
        if (least === undefined || attempt >= policy.attempts) return yield* Effect.fail(tried.failure)
        // Random, so that clients that were refused together do not return together.
        const delay = least + pause * (0.5 + 0.5 * (yield* Random.next))
        if ((yield* Clock.currentTimeMillis) + delay >= deadline) return yield* Effect.fail(tried.failure)
        yield* Effect.sleep(delay)
        pause = Math.min(policy.longestPause, pause * 2)
      }
    })
