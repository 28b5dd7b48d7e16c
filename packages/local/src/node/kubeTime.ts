import { DateTime, Effect } from "effect"

/** A time in Kubernetes' usual format: UTC, whole seconds. */
export const seconds = (millis: number) => new Date(millis).toISOString().replace(/\.\d+Z$/, "Z")

/** A time in the format of leases and new events: UTC, six decimals. */
export const micros = (millis: number) => new Date(millis).toISOString().replace("Z", "000Z")

/** The current time in whole seconds. */
export const now = Effect.map(DateTime.now, (instant) => seconds(instant.epochMilliseconds))
