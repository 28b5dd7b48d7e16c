import { rm, stat, statfs } from "node:fs/promises"
import { join } from "node:path"
import type { Commit, RepositoryFile } from "@seatrial/domain"
import { Effect, Fiber, Option, Queue, type Redacted } from "effect"
import { HubRefusal, HubUnavailable, StoreFull, WeightsMismatch } from "../failures.ts"
import { connect } from "../HubConnection.ts"
import type { HubSettings } from "../HubSettings.ts"
import { RefusalReason } from "../refusals.ts"
import { isRepoName, refusalOf, unsupportedFormat } from "../screening.ts"
import { isDownloaded } from "../servingFiles.ts"
import { downloadFiles } from "./downloadFiles.ts"
import type { FetchProgress } from "./FetchProgress.ts"
import { hasManifest, isComplete, isFresh, manifestOf, noteUse } from "./Manifest.ts"
import { onDisk } from "./onDisk.ts"
import { bytesThere, journalOf, readJournal } from "./PartFile.ts"
import { claimPartial, removeAbandoned } from "./PartialDirectory.ts"
import { placeDirectory, prepareDirectory } from "./placeDirectory.ts"
import { repairFiles } from "./repairFiles.ts"
import { writeRecord } from "./VerifiedRecord.ts"

interface FetchOptions {
  readonly repo: string
  readonly commit: Commit
  readonly files: ReadonlyArray<RepositoryFile>
  readonly directory: string
  readonly token: Option.Option<Redacted.Redacted<string>>
  readonly onProgress?: (progress: FetchProgress) => Effect.Effect<void>
}

const checkSpace = Effect.fnUntraced(function* (partial: string, files: ReadonlyArray<RepositoryFile>, chunkBytes: number) {
  const { free, missing } = yield* onDisk(async () => {
    const { bavail, bsize } = await statfs(partial)
    let missing = 0
    for (const file of files) {
      const target = join(partial, file.path)
      const stats = await stat(target).catch(() => null)
      if (stats?.size !== file.size) missing += file.size - bytesThere(await readJournal(journalOf(target), chunkBytes, file.size), chunkBytes, file)
    }
    return { free: bavail * bsize, missing }
  })
  if (missing > free) return yield* new StoreFull({ message: `The files of the model need ${missing} bytes more, and ${free} bytes are free.` })
})

/** Maximum number of file names in a message. */
const maxNamedFiles = 3

const namesOf = (files: ReadonlyArray<RepositoryFile>): string => {
  const names = files.slice(0, maxNamedFiles).map(({ path }) => path)
  return `${names.join(", ")}${files.length > maxNamedFiles ? ` and ${files.length - maxNamedFiles} more` : ""}`
}

/** The service's `fetch`. */
export const fetchFiles = (settings: HubSettings) =>
  Effect.fn("Hub.fetch")(function* ({ commit, directory, files, onProgress, repo, token }: FetchOptions) {
    const foreign = files.find(({ path }) => !isDownloaded(path))
    if (foreign !== undefined) return yield* unsupportedFormat("The list of files to download names one that serving does not need.", commit)
    if (!isRepoName(repo)) return yield* new HubRefusal({ reason: RefusalReason.RepositoryNotFound({ repo, hasToken: Option.isSome(token) }), commit })
    const manifest = manifestOf(repo, commit, files)
    const totalBytes = files.reduce((sum, { size }) => sum + size, 0)
    const report = onProgress ?? (() => Effect.void)
    const isPresent = isComplete(directory, manifest, files)
    const fresh = isFresh(directory, manifest, files)
    if (yield* fresh) return
    const claimed = yield* claimPartial(directory, fresh, report({ bytes: 0, totalBytes, waiting: true }))
    if (Option.isNone(claimed)) return
    const claim = claimed.value

    if (yield* isPresent) {
      yield* noteUse(directory)
      yield* onDisk(() => rm(claim.path, { recursive: true, force: true }))
      return
    }
    yield* prepareDirectory(claim.path, manifest)
    if (yield* hasManifest(directory, manifest)) {
      yield* Effect.logInfo(`${repo} at ${commit.slice(0, 7)} has changed since its verification. Its changed files are verified again.`)
      const repaired = repairFiles(directory, claim.path, files, () => undefined)
      if (yield* Effect.raceFirst(repaired, claim.beat)) {
        yield* noteUse(directory)
        yield* onDisk(() => rm(claim.path, { recursive: true, force: true }))
        return
      }
    }
    yield* checkSpace(claim.path, files, settings.chunkBytes)

    let bytes = 0
    const progressed = yield* Queue.sliding<void>(1)
    const onBytes = (more: number) => {
      bytes += more
      Queue.offerUnsafe(progressed, undefined)
    }
    const reporter = yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(progressed), () => report({ bytes, totalBytes, waiting: false }))))
    const { fileUrl } = connect(settings, token)
    const source = { settings, token, fileUrl: (path: string) => fileUrl(repo, commit, path) }
    const differing = yield* downloadFiles({ source, files, claim, onBytes }).pipe(
      Effect.scoped,
      Effect.raceFirst(claim.beat),
      // The volume filled up during the download. A new check reports how much is missing now.
      Effect.catchTag("StoreFull", (full) => Effect.andThen(checkSpace(claim.path, files, settings.chunkBytes), () => Effect.fail(full))),
      Effect.catchTag("HubAnswer", (answer) => refusalOf(answer, { repo, ref: commit, commit, hasToken: Option.isSome(token) }))
    )
    if (differing.length > 0) {
      const of = `${differing.length} of ${files.length} files ${differing.length === 1 ? "differs" : "differ"} from commit ${commit.slice(0, 7)}`
      const detail = `${of} after two downloads: ${namesOf(differing)}.`
      return yield* new WeightsMismatch({ detail })
    }
    if (!(yield* onDisk(claim.isHeld))) return yield* new HubUnavailable({ message: "Another download took over the directory of the model." })
    yield* writeRecord(claim.path, files)
    yield* placeDirectory(claim.path, directory, isPresent)
    yield* noteUse(directory)
    yield* Fiber.interrupt(reporter)
    yield* report({ bytes: totalBytes, totalBytes, waiting: false })
    yield* removeAbandoned(directory)
  }, Effect.scoped)
