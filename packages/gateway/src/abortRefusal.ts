import type { AbortReason, RequestAbort } from "./RequestAbort.ts"
import { clientClosed, keyEnded, type Refusal, unavailable } from "./refusals.ts"

const refusals: Readonly<Record<AbortReason, Refusal>> = { gone: clientClosed, stopped: unavailable, unrecorded: unavailable, revoked: keyEnded }

/** The error of an aborted request. */
export const abortRefusal = ({ reason }: RequestAbort): Refusal => (reason === null ? unavailable : refusals[reason])
