import type { Commit, RefusalCode, RepositoryFacts, RepositoryFile } from "@seatrial/domain"
import { Context, Data, type Effect, type Option, type Redacted } from "effect"

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

export interface FetchProgress {
  readonly bytes: number
  readonly totalBytes: number
}

/** The model hub, spoken to as the holder of `token` where there is one. */
export class Hub extends Context.Service<
  Hub,
  {
    /** Pins a ref (default: the default branch) to its commit, reads what serving needs to know, and screens it. Downloads no weights. */
    readonly inspect: (
      source: { readonly repo: string; readonly ref?: string | undefined },
      token: Option.Option<Redacted.Redacted<string>>
    ) => Effect.Effect<RepositoryFacts, HubRefusal | HubUnavailable>
    /**
     * Brings the files of a pinned commit into `directory`, resuming what is there, and verifies each against its SHA-256 or git blob id before it is visible.
     * The directory appears whole, by one rename, or not at all.
     */
    readonly fetch: (options: {
      readonly repo: string
      readonly commit: Commit
      readonly files: ReadonlyArray<RepositoryFile>
      readonly directory: string
      readonly token: Option.Option<Redacted.Redacted<string>>
      readonly onProgress?: (progress: FetchProgress) => Effect.Effect<void>
    }) => Effect.Effect<void, HubRefusal | HubUnavailable | WeightsMismatch>
  }
>()("seatrial/Hub") {}
