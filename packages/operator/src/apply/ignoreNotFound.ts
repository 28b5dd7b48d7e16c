import type { KubeError } from "@seatrial/kube"
import { Effect } from "effect"

/** Whether an object is gone or was changed or replaced since it was read. */
export const isStale = (error: KubeError): boolean => error.reason === "Conflict" || error.reason === "NotFound"

/** Deletes an object. Succeeds if it is gone or was replaced. */
export const ignoreNotFound = <R>(removal: Effect.Effect<void, KubeError, R>) => Effect.catchIf(removal, isStale, () => Effect.void)
