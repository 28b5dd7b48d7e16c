import { Data } from "effect"

/**
 * No usable response: no connection, a broken connection, a timeout, or a proxy without its server. `retryAfter` in
 * seconds, if given.
 */
export class Unreachable extends Data.TaggedError("Unreachable")<{ readonly message: string; readonly cause?: unknown; readonly retryAfter?: number }> {}

/** The server at the address is not a Seatrial server. */
export class NotSeatrial extends Data.TaggedError("NotSeatrial")<{ readonly message: string; readonly status: number }> {}

/**
 * A Seatrial server sent a response that this client does not understand, or does not know the operation. Their
 * versions differ.
 */
export class VersionSkew extends Data.TaggedError("VersionSkew")<{ readonly message: string; readonly status: number; readonly requestId: string | null }> {}

/**
 * The input does not match the contract; nothing was sent. `param` is the path of the invalid value, if there is one.
 */
export class InvalidInput extends Data.TaggedError("InvalidInput")<{ readonly message: string; readonly param: string | null }> {}

/** Failures in addition to the contract's errors of an operation. */
export type ClientFailure = Unreachable | NotSeatrial | VersionSkew | InvalidInput
