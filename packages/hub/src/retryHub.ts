import { Duration, Effect, Schedule } from "effect"
import type { HubAnswer, HubUnavailable, Unreadable } from "./failures.ts"
import type { HubSettings } from "./HubSettings.ts"
import { pauseBefore } from "./pauseBefore.ts"

/**
 * How long transient failures are retried. `brief`: a few times within seconds. `long`: for minutes, with the pauses
 * that the hub asks for.
 */
export type Patience = "brief" | "long"

type HubFailure = HubAnswer | HubUnavailable | Unreadable

const retryLong = <A, E extends HubFailure>(settings: HubSettings, effect: Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    let failures = 0
    return Effect.retry(
      Effect.tapError(effect, (error) => {
        if (error._tag !== "HubUnavailable" || ++failures > settings.downloadRetries) return Effect.void
        return Effect.sleep(pauseBefore(settings.retryDelay, failures, error))
      }),
      { times: settings.downloadRetries, while: (error) => error._tag === "HubUnavailable" }
    )
  })

const retryBriefly = <A, E extends HubFailure>(settings: HubSettings, effect: Effect.Effect<A, E>) =>
  Effect.retry(effect, {
    times: settings.retries,
    schedule: Schedule.exponential(settings.retryDelay),
    // If the hub asks for a longer pause, the failure is returned to the caller, who may wait.
    while: (error) => error._tag === "HubUnavailable" && (error.retryAfter ?? 0) <= Duration.toMillis(settings.retryDelay)
  })

/** Retries transient failures of a call to the hub. */
export const retryHub =
  (settings: HubSettings, patience: Patience) =>
  <A, E extends HubFailure>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    patience === "long" ? retryLong(settings, effect) : retryBriefly(settings, effect)
