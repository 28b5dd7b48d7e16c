import type { Commit, RepositoryFacts, RepositoryFile, TensorPrefix } from "@seatrial/domain"
import { Context, Effect, Layer, type Option, type Redacted, Semaphore } from "effect"
import { makeFactsCache } from "./FactsCache.ts"
import type { HubRefusal, HubUnavailable, StoreFull, WeightsMismatch } from "./failures.ts"
import type { FetchProgress } from "./fetch/FetchProgress.ts"
import { fetchFiles } from "./fetch/fetchFiles.ts"
import { HubSettings } from "./HubSettings.ts"
import { type InspectSource, inspect } from "./inspect.ts"
import type { Depth } from "./readCommit.ts"
import { readSmall, type SmallFiles } from "./readSmall.ts"
import { readTensors, type WantedTensors } from "./readTensors.ts"
import { makeReadMemory } from "./remembering.ts"

/** Repositories that a process reads at once: what each may cost in memory is bounded, and so is their sum. */
const readAtOnce = 8

/** The model hub, spoken to as the holder of `token` where there is one. */
export class Hub extends Context.Service<
  Hub,
  {
    /**
     * Pins a ref (default: the default branch) to its commit, reads what serving needs to know, and screens it. Downloads no weights. With the depth `few` it makes
     * at most 12 requests where nothing goes wrong, within `HUB_PREVIEW_TIMEOUT`: then it reads the headers of some weight files and infers those of the others.
     * Of an adapter it pins and reads the base too; with `all` it also hashes the adapter's tensors.
     */
    readonly inspect: (
      source: InspectSource,
      token: Option.Option<Redacted.Redacted<string>>,
      depth?: Depth
    ) => Effect.Effect<RepositoryFacts, HubRefusal | HubUnavailable>
    /**
     * Brings the files of a pinned commit into `directory`, resuming what is there, and verifies each against its SHA-256 or git blob id before it is visible.
     * The directory appears whole, by one rename, or not at all; of several that bring the same, one works and the others wait for it.
     */
    readonly fetch: (options: {
      readonly repo: string
      readonly commit: Commit
      readonly files: ReadonlyArray<RepositoryFile>
      readonly directory: string
      readonly token: Option.Option<Redacted.Redacted<string>>
      readonly onProgress?: (progress: FetchProgress) => Effect.Effect<void>
    }) => Effect.Effect<void, HubRefusal | HubUnavailable | StoreFull | WeightsMismatch>
    /** Files of a pinned commit by path, each held to its hash; those that are empty or larger than the limit are left out. */
    readonly readSmall: (files: SmallFiles) => Effect.Effect<ReadonlyMap<string, Uint8Array>, HubUnavailable>
    /** The first values of those of the tensors that a pinned commit's weight files hold in 16 or 32 bits: a few short reads, not held to a hash. */
    readonly readTensors: (tensors: WantedTensors) => Effect.Effect<ReadonlyArray<TensorPrefix>, HubUnavailable>
  }
>()("seatrial/Hub") {
  /** The hub at `HF_ENDPOINT`; see `HubSettings` for every setting. */
  static readonly layer = Layer.effect(
    Hub,
    Effect.gen(function* () {
      const settings = yield* HubSettings
      return Hub.of({
        inspect: inspect(settings, makeFactsCache(settings.remember), makeReadMemory(settings.remember), yield* Semaphore.make(readAtOnce)),
        fetch: fetchFiles(settings),
        readSmall: readSmall(settings),
        readTensors: readTensors(settings)
      })
    })
  )
}
