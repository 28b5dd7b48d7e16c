import type { Departure, DepartureReason } from "./Departure.ts"
import { clientClosed, keyEnded, type Refusal, unavailable } from "./refusals.ts"

const refusals: Readonly<Record<DepartureReason, Refusal>> = { gone: clientClosed, stopped: unavailable, unrecorded: unavailable, revoked: keyEnded }

/** How a request ends that is not worked on any more. */
export const departureRefusal = ({ reason }: Departure): Refusal => (reason === null ? unavailable : refusals[reason])
