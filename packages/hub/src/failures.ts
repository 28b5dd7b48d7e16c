import type { Commit, RefusalCode } from "@seatrial/domain"
import { Data } from "effect"
import { describeRefusal, RefusalAudience, type RefusalReason, type RefusalText, refusalCode } from "./refusals.ts"

/** The repository cannot be served as requested. `code`, `message` and `remedy` are those for an API caller. */
export class HubRefusal extends Data.TaggedError("HubRefusal")<{
  readonly reason: RefusalReason
  /** Null if the ref was not resolved. */
  readonly commit: Commit | null
}> {
  get code(): RefusalCode {
    return refusalCode(this.reason)
  }

  override get message(): string {
    return this.textFor(RefusalAudience.ApiCaller()).message
  }

  get remedy(): string {
    return this.textFor(RefusalAudience.ApiCaller()).remedy
  }

  /** The text for a reader. It may be shown to that reader. */
  textFor(audience: RefusalAudience): RefusalText {
    return describeRefusal(this.reason, audience)
  }
}

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
