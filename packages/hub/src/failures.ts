import type { Commit, RefusalCode } from "@seatrial/domain"
import { Data } from "effect"

/** The repository cannot be served as asked; `message` says what was seen, `remedy` what to do. Both may be shown to the caller. */
export class HubRefusal extends Data.TaggedError("HubRefusal")<{
  readonly code: RefusalCode
  readonly message: string
  readonly remedy: string
  /** Null where the ref was not resolved. */
  readonly commit: Commit | null
}> {}

/** The hub cannot be reached or does not answer sensibly now; trying again later may help. */
export class HubUnavailable extends Data.TaggedError("HubUnavailable")<{
  readonly message: string
  /** Milliseconds, where the hub told. */
  readonly retryAfter?: number
}> {}

/** A file came with other bytes than the commit lists, twice. `detail` may be shown to the caller. */
export class WeightsMismatch extends Data.TaggedError("WeightsMismatch")<{ readonly detail: string }> {}

/** The volume has no room for the files; `message` names the bytes and may be shown to the caller. */
export class StoreFull extends Data.TaggedError("StoreFull")<{ readonly message: string }> {}

/** The weights store does not hold the commit, or not all of it; `message` may be shown to the caller. */
export class WeightsAbsent extends Data.TaggedError("WeightsAbsent")<{ readonly message: string }> {}

/** What a repository holds is malformed, too large or made to mislead; `reason` is a sentence that may be shown to the caller. */
export class Unreadable extends Data.TaggedError("Unreadable")<{ readonly reason: string }> {}

/** The hub answered a request with a 4xx status that is a fact about the repository, not about the hub. */
export class HubAnswer extends Data.TaggedError("HubAnswer")<{
  readonly status: number
  /** The hub's `X-Error-Code`, for example `GatedRepo`. */
  readonly code: string | null
}> {}

/** The configuration is of a kind of model that no engine here serves; `reason` may be shown. */
export class UnsupportedArchitecture extends Data.TaggedError("UnsupportedArchitecture")<{ readonly reason: string }> {}
