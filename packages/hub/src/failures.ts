import type { Commit, RefusalCode } from "@seatrial/domain"
import { Data } from "effect"

/**
 * The repository cannot be served as requested. `message` says why, `remedy` what to do. Both may be shown to the
 * caller.
 */
export class HubRefusal extends Data.TaggedError("HubRefusal")<{
  readonly code: RefusalCode
  readonly message: string
  readonly remedy: string
  /** Null if the ref was not resolved. */
  readonly commit: Commit | null
}> {}

/** The hub is unreachable or its responses are not usable. A later attempt may succeed. */
export class HubUnavailable extends Data.TaggedError("HubUnavailable")<{
  readonly message: string
  /** Milliseconds, if the hub sent it. */
  readonly retryAfter?: number
}> {}

/** A downloaded file differed twice from the commit's hash. `detail` may be shown to the caller. */
export class WeightsMismatch extends Data.TaggedError("WeightsMismatch")<{ readonly detail: string }> {}

/** The volume has no space for the files. `message` names the bytes and may be shown to the caller. */
export class StoreFull extends Data.TaggedError("StoreFull")<{ readonly message: string }> {}

/** The weights store lacks the commit or a part of it. `message` may be shown to the caller. */
export class WeightsAbsent extends Data.TaggedError("WeightsAbsent")<{ readonly message: string }> {}

/**
 * The repository's content is malformed, too large or deceptive. `reason` is a sentence that may be shown to the
 * caller.
 */
export class Unreadable extends Data.TaggedError("Unreadable")<{ readonly reason: string }> {}

/** A 4xx response of the hub that describes the repository, not a failure of the hub. */
export class HubAnswer extends Data.TaggedError("HubAnswer")<{
  readonly status: number
  /** The hub's `X-Error-Code`, for example `GatedRepo`. */
  readonly code: string | null
}> {}

/** No supported engine serves this kind of model. `reason` may be shown to the caller. */
export class UnsupportedArchitecture extends Data.TaggedError("UnsupportedArchitecture")<{ readonly reason: string }> {}
