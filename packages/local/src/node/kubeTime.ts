import { DateTime, Effect } from "effect"

/** An instant as Kubernetes writes most of them: UTC, whole seconds. */
export const seconds = (millis: number) => new Date(millis).toISOString().replace(/\.\d+Z$/, "Z")

/** An instant as leases and new events carry it: UTC, six digits of the second. */
export const micros = (millis: number) => new Date(millis).toISOString().replace("Z", "000Z")

/** Now, in whole seconds. */
export const now = Effect.map(DateTime.now, (instant) => seconds(instant.epochMilliseconds))
