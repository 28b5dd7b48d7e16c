import { rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { type Commit, type RepositoryFile, sizeInWords } from "@seatrial/domain"
import { Clock, Effect, Option, type Scope } from "effect"
import { expectedHash } from "../contentHash.ts"
import { type HubUnavailable, StoreFull, WeightsAbsent, WeightsMismatch } from "../failures.ts"
import type { FetchProgress } from "../fetch/FetchProgress.ts"
import { hasManifest, lastUsed, manifestOf, noteUse, storedFiles } from "../fetch/Manifest.ts"
import { makeReporter } from "../fetch/makeReporter.ts"
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

/** A copy of a commit's files. */
interface Copy {
  readonly options: CopyOptions
  readonly files: ReadonlyArray<RepositoryFile>
  readonly manifest: string
  readonly totalBytes: number
  /** The commit's directories in the store and on the node. */
  readonly source: string
  readonly directory: string
}

/**
 * The list of the files to copy, from the store, otherwise from an existing copy, which does not depend on the store.
 */
const listFiles = Effect.fnUntraced(function* ({ commit, from, manifest, repo, to }: CopyOptions) {
  const listed = yield* storedFiles(join(from, repo, commit), repo, commit, manifest)
  const stored = Option.isSome(listed) ? listed : yield* storedFiles(join(to, repo, commit), repo, commit, manifest)
  if (Option.isNone(stored)) return yield* new WeightsAbsent({ message: `The weights store has no complete copy of ${repo} at ${commit.slice(0, 7)}.` })
  return stored.value
})

const checkStore = Effect.fnUntraced(function* ({ options: { commit, repo }, source }: Copy, files: ReadonlyArray<RepositoryFile>) {
  for (const { path, size } of files) {
    const isPresent = yield* hasFullSize(source, { path, size, blob_id: "", sha256: null })
    if (!isPresent) return yield* new WeightsAbsent({ message: `The weights store has lost ${path} of ${repo} at ${commit.slice(0, 7)}.` })
  }
})

const makeRoom = ({ directory, options: { inUse, onRemoved, to } }: Copy, needed: number) =>
  Effect.flatMap(freeSpace(to, directory, needed, inUse), (removed) => Effect.forEach(removed, onRemoved, { discard: true }))

/** Removes unused copies if less than `needed` bytes are free. */
const checkRoom = Effect.fnUntraced(function* (copy: Copy, needed: number) {
  const { to } = copy.options
  if ((yield* freeBytes(to)) < needed) yield* makeRoom(copy, needed)
  const free = yield* freeBytes(to)
  if (free >= needed) return
  return yield* new StoreFull({
    message: `The node's copy of the weights needs ${sizeInWords(needed)} (${needed} bytes), but only ${sizeInWords(free)} (${free} bytes) are free. The other copies may be in use and were not removed.`
  })
})

const discard = (claim: Claim) => onDisk(() => rm(claim.path, { recursive: true, force: true }))

/** Copies the missing and wrong files under a claim. Returns the number of copied bytes. */
const copyClaimed = Effect.fnUntraced(function* (copy: Copy, claim: Claim) {
  const { directory, files, manifest, options, totalBytes } = copy
  // A directory that engines already read is repaired file by file, so that it always exists.
  const repairs = yield* hasManifest(directory, manifest)
  const base = repairs ? directory : claim.path
  yield* prepareDirectory(claim.path, manifest)
  const reporter = yield* makeReporter(totalBytes, options.onProgress)
  const threads = yield* makeCopyThreads(files.length, totalBytes, reporter.add)
  const wrong = yield* Effect.raceFirst(repairs ? wrongFiles(base, files, options.verify, threads) : missingFiles(base, files), claim.beat)
  const needed = sizeOf(wrong)
  yield* reporter.reset(totalBytes - needed)

  yield* checkStore(copy, wrong)
  yield* checkRoom(copy, needed)
  yield* copyFiles(options, base, claim, wrong, threads).pipe(
    Effect.raceFirst(claim.beat),
    // Other processes use the same volume. The next attempt finds the space, or reports how much is missing.
    Effect.tapError((error) => (error._tag === "StoreFull" ? makeRoom(copy, needed) : Effect.void))
  )
  yield* writeRecord(base, files)
  yield* repairs ? discard(claim) : placeDirectory(claim.path, directory, isCopied(directory, manifest, files))
  yield* noteUse(directory)
  yield* reporter.complete
  yield* removeAbandoned(directory)
  return needed
})

/**
 * Copies a commit from the weights store to a folder of the node and verifies each file against the list. An existing
 * copy is reused. The copy appears by a single rename; if several processes copy the same commit, one of them does. If
 * space is missing, unused copies are removed, least recently used first.
 */
export const copyWeights = Effect.fn("copyWeights")(function* (
  options: CopyOptions
): Effect.fn.Return<CopyResult, StoreFull | WeightsAbsent | WeightsMismatch | HubUnavailable, Scope.Scope> {
  const { commit, from, onProgress, repo, to, verify } = options
  const files = yield* listFiles(options)
  const directory = join(to, repo, commit)
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
  if (verify === "recorded" && (yield* isPresent)) {
    yield* noteUse(directory)
    yield* discard(claimed.value)
    return reused
  }
  const copied = yield* copyClaimed({ options, files, manifest, totalBytes, source: join(from, repo, commit), directory }, claimed.value)
  return { files: files.length, copied }
}, Effect.scoped)
