import { Data } from "effect"

/** Nothing usable came back: no connection, one that broke, no answer in time, or a proxy that says its server is away. `retryAfter` in seconds, where it was told. */
export class Unreachable extends Data.TaggedError("Unreachable")<{ readonly message: string; readonly cause?: unknown; readonly retryAfter?: number }> {}

/** What answers at the address is no Seatrial server. */
export class NotSeatrial extends Data.TaggedError("NotSeatrial")<{ readonly message: string; readonly status: number }> {}

/** A Seatrial server answered what this client does not understand, or does not know the operation: their versions differ. */
export class VersionSkew extends Data.TaggedError("VersionSkew")<{ readonly message: string; readonly status: number; readonly requestId: string | null }> {}

/** What the caller gave is not what the contract takes; nothing was sent. `param` is its path, where it has one. */
export class InvalidInput extends Data.TaggedError("InvalidInput")<{ readonly message: string; readonly param: string | null }> {}

/** What goes wrong beside the errors that the contract has for an operation. */
export type ClientFailure = Unreachable | NotSeatrial | VersionSkew | InvalidInput
