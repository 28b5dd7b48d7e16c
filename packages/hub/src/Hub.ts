import type { Commit, RepositoryFacts, RepositoryFile, TensorPrefix } from "@seatrial/domain"
import { Context, Effect, Layer, type Option, type Redacted, Semaphore } from "effect"
import { makeFactsCache } from "./FactsCache.ts"
import type { HubRefusal, HubUnavailable, StoreFull, WeightsMismatch } from "./failures.ts"
import type { FetchProgress } from "./fetch/FetchProgress.ts"
import { fetchFiles } from "./fetch/fetchFiles.ts"
import { HubSettings } from "./HubSettings.ts"
import { type InspectSource, inspect } from "./inspect.ts"
import type { Depth } from "./readFile.ts"
import { readSmall, type SmallFiles } from "./readSmall.ts"
import { readTensors, type WantedTensors } from "./readTensors.ts"
import { makeReadMemory } from "./remembering.ts"

/** Maximum number of repositories that a process reads at once. The memory for each is bounded, and so is the total. */
const readAtOnce = 8

/** A client of the model hub that uses `token` if there is one. */
export class Hub extends Context.Service<
  Hub,
  {
    /**
     * Pins a ref (default: the default branch) to its commit, reads the facts that serving needs, and screens the
     * repository. Downloads no weights. With the depth `few` it makes at most 12 requests if nothing fails, within
     * `HUB_PREVIEW_TIMEOUT`: it reads the headers of some weight files and infers the others. For an adapter it also
     * pins and reads the base; with `all` it also hashes the adapter's tensors.
     */
    readonly inspect: (
      source: InspectSource,
      token: Option.Option<Redacted.Redacted<string>>,
      depth?: Depth
    ) => Effect.Effect<RepositoryFacts, HubRefusal | HubUnavailable>
    /**
     * Downloads the files of a pinned commit into `directory`, resumes an earlier download, and verifies each file
     * against its SHA-256 or git blob id before it becomes visible. The directory appears complete by a single rename.
     * If several processes download the same commit, one downloads and the others wait.
     */
    readonly fetch: (options: {
      readonly repo: string
      readonly commit: Commit
      readonly files: ReadonlyArray<RepositoryFile>
      readonly directory: string
      readonly token: Option.Option<Redacted.Redacted<string>>
      readonly onProgress?: (progress: FetchProgress) => Effect.Effect<void>
    }) => Effect.Effect<void, HubRefusal | HubUnavailable | StoreFull | WeightsMismatch>
    /**
     * Files of a pinned commit by path, each verified by its hash. Empty files and files above the limit are omitted.
     */
    readonly readSmall: (files: SmallFiles) => Effect.Effect<ReadonlyMap<string, Uint8Array>, HubUnavailable>
    /**
     * The first values of the tensors that a pinned commit stores in 16 or 32 bits. Takes a few short reads that are
     * not verified by a hash.
     */
    readonly readTensors: (tensors: WantedTensors) => Effect.Effect<ReadonlyArray<TensorPrefix>, HubUnavailable>
  }
>()("seatrial/Hub") {
  /** The hub at `HF_ENDPOINT`; see `HubSettings` for all settings. */
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
