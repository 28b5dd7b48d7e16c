import { rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { type Commit, type RepositoryFile, sizeInWords } from "@seatrial/domain"
import { Clock, Effect, Fiber, Option, Queue, type Scope } from "effect"
import { expectedHash } from "../contentHash.ts"
import { type HubUnavailable, StoreFull, WeightsAbsent, WeightsMismatch } from "../failures.ts"
import type { FetchProgress } from "../fetch/FetchProgress.ts"
import { hasManifest, lastUsed, manifestOf, noteUse, storedFiles } from "../fetch/Manifest.ts"
import { onDisk } from "../fetch/onDisk.ts"
import { type Claim, claimPartial, removeAbandoned } from "../fetch/PartialDirectory.ts"
import { placeDirectory, prepareDirectory } from "../fetch/placeDirectory.ts"
import { areAsRecorded, hasFullSize, writeRecord } from "../fetch/VerifiedRecord.ts"
import { type CopyThreads, makeCopyThreads } from "./CopyThreads.ts"
import { type CopiesInUse, freeBytes, freeSpace, type RemovedCopy } from "./freeSpace.ts"
import { taskOf, type Verify, wrongFiles } from "./wrongFiles.ts"

export interface CopyOptions {
  readonly repo: string
  readonly commit: Commit
  /** SHA-256 of the file list. */
  readonly manifest: string
  /** Root folders of the store and of the node's copies; each has commits at `<repo>/<commit>`. */
  readonly from: string
  readonly to: string
  /** How an existing copy is checked: by the record of its verification, or byte for byte. */
  readonly verify: Verify
  readonly inUse: CopiesInUse
  readonly onProgress: (progress: FetchProgress) => Effect.Effect<void>
  readonly onRemoved: (removed: RemovedCopy) => Effect.Effect<void>
}

export interface CopyResult {
  readonly files: number
  /** Copied bytes; 0 if a copy existed. */
  readonly copied: number
}

/** Milliseconds after its last use during which no process can be about to remove a copy. */
const freshFor = 120_000

const sizeOf = (files: ReadonlyArray<RepositoryFile>) => files.reduce((sum, { size }) => sum + size, 0)

/** Whether a copy with this list exists and each of its files is unchanged since its verification. */
const isCopied = Effect.fnUntraced(function* (directory: string, manifest: string, files: ReadonlyArray<RepositoryFile>) {
  return (yield* hasManifest(directory, manifest)) && (yield* areAsRecorded(directory, files))
})

/** The files that a partial directory still lacks. A file in it gets its name after its verification. */
const missingFiles = (directory: string, files: ReadonlyArray<RepositoryFile>) =>
  Effect.filter(files, (file) => Effect.map(hasFullSize(directory, file), (is) => !is))

/** Copies files into a directory. Each gets its name after it was verified against the commit's list. */
const copyFiles = Effect.fnUntraced(function* (
  { commit, from, repo }: CopyOptions,
  base: string,
  claim: Claim,
  files: ReadonlyArray<RepositoryFile>,
  threads: CopyThreads
) {
  const source = join(from, repo, commit)
  yield* Effect.forEach(
    files,
    Effect.fnUntraced(function* (file) {
      const begun = join(claim.path, `${file.path}.copying`)
      const digest = yield* threads.copy(taskOf(join(source, file.path), begun, file))
      if (digest !== expectedHash(file)) {
        yield* onDisk(() => rm(begun, { force: true }))
        return yield* new WeightsMismatch({
          detail: `${file.path} in the weights store differs from commit ${commit.slice(0, 7)}: delete its directory ${repo}/${commit} there and deploy again, which downloads it.`
        })
      }
      yield* onDisk(() => rename(begun, join(base, file.path)))
    }),
    { concurrency: threads.atOnce, discard: true }
  )
})

/**
 * Copies a commit from the weights store to a folder of the node and verifies each file against the list. An existing
 * copy is reused. The copy appears by a single rename; if several processes copy the same commit, one of them does. If
 * space is missing, unused copies are removed, least recently used first.
 */
export const copyWeights = Effect.fn("copyWeights")(function* (
  options: CopyOptions
): Effect.fn.Return<CopyResult, StoreFull | WeightsAbsent | WeightsMismatch | HubUnavailable, Scope.Scope> {
  const { commit, from, inUse, onProgress, onRemoved, repo, to, verify } = options
  const source = join(from, repo, commit)
  const directory = join(to, repo, commit)
  const listed = yield* storedFiles(source, repo, commit, options.manifest)
  // A copy has its own list, so it does not depend on the store.
  const stored = Option.isSome(listed) ? listed : yield* storedFiles(directory, repo, commit, options.manifest)
  if (Option.isNone(stored)) return yield* new WeightsAbsent({ message: `The weights store has no whole copy of ${repo} at ${commit.slice(0, 7)}.` })
  const files = stored.value
  const manifest = manifestOf(repo, commit, files)
  const totalBytes = sizeOf(files)
  const reused = { files: files.length, copied: 0 }

  const isPresent = isCopied(directory, manifest, files)
  const fresh = Effect.gen(function* () {
    const used = yield* lastUsed(directory)
    if (verify === "full" || used === null || (yield* Clock.currentTimeMillis) - used >= freshFor || !(yield* isPresent)) return false
    yield* noteUse(directory)
    return true
  })
  if (yield* fresh) return reused
  const claimed = yield* claimPartial(directory, fresh, onProgress({ bytes: 0, totalBytes, waiting: true }))
  if (Option.isNone(claimed)) return reused
  const claim = claimed.value
  const discard = onDisk(() => rm(claim.path, { recursive: true, force: true }))
  if (verify === "recorded" && (yield* isPresent)) {
    yield* noteUse(directory)
    yield* discard
    return reused
  }

  // A directory that engines already read is repaired file by file, so that it always exists.
  const repairs = yield* hasManifest(directory, manifest)
  const base = repairs ? directory : claim.path
  yield* prepareDirectory(claim.path, manifest)
  let bytes = 0
  const progressed = yield* Queue.sliding<void>(1)
  const threads = yield* makeCopyThreads(files.length, totalBytes, (more) => {
    bytes += more
    Queue.offerUnsafe(progressed, undefined)
  })
  const reporter = yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(progressed), () => onProgress({ bytes, totalBytes, waiting: false }))))
  const wrong = yield* Effect.raceFirst(repairs ? wrongFiles(base, files, verify, threads) : missingFiles(base, files), claim.beat)
  const needed = sizeOf(wrong)
  bytes = totalBytes - needed
  yield* onProgress({ bytes, totalBytes, waiting: false })

  for (const { path, size } of wrong) {
    const isPresentInStore = yield* hasFullSize(source, { path, size, blob_id: "", sha256: null })
    if (!isPresentInStore) return yield* new WeightsAbsent({ message: `The weights store has lost ${path} of ${repo} at ${commit.slice(0, 7)}.` })
  }
  const makeRoom = Effect.flatMap(freeSpace(to, directory, needed, inUse), (removed) => Effect.forEach(removed, onRemoved, { discard: true }))
  const checkRoom = Effect.gen(function* () {
    if ((yield* freeBytes(to)) < needed) yield* makeRoom
    const free = yield* freeBytes(to)
    if (free >= needed) return
    return yield* new StoreFull({
      message: `The node's copy of the weights needs ${sizeInWords(needed)} (${needed} bytes), and ${sizeInWords(free)} (${free} bytes) are free: every other copy may be in use.`
    })
  })
  yield* checkRoom
  yield* copyFiles(options, base, claim, wrong, threads).pipe(
    Effect.raceFirst(claim.beat),
    // Other processes use the same volume. The next attempt finds the space, or reports how much is missing.
    Effect.tapError((error) => (error._tag === "StoreFull" ? makeRoom : Effect.void))
  )
  yield* writeRecord(base, files)
  if (repairs) yield* discard
  else yield* placeDirectory(claim.path, directory, isPresent)
  yield* noteUse(directory)
  yield* Fiber.interrupt(reporter)
  yield* onProgress({ bytes: totalBytes, totalBytes, waiting: false })
  yield* removeAbandoned(directory)
  return { files: files.length, copied: needed }
}, Effect.scoped)
