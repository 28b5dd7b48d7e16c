import { rm, stat, statfs } from "node:fs/promises"
import { join } from "node:path"
import type { Commit, RepositoryFile } from "@seatrial/domain"
import { Effect, Option, type Redacted } from "effect"
import { HubRefusal, StoreFull, WeightsMismatch } from "../failures.ts"
import { connect } from "../HubConnection.ts"
import type { HubSettings } from "../HubSettings.ts"
import { RefusalReason } from "../refusals.ts"
import { isRepoName, refusalOf, unsupportedFormat } from "../screening.ts"
import { isDownloaded } from "../servingFiles.ts"
import { downloadFiles } from "./downloadFiles.ts"
import type { FetchProgress } from "./FetchProgress.ts"
import { hasManifest, isComplete, isFresh, manifestOf, noteUse } from "./Manifest.ts"
import { makeReporter } from "./makeReporter.ts"
import { onDisk } from "./onDisk.ts"
import { bytesThere, journalOf, readJournal } from "./PartFile.ts"
import { type Claim, claimPartial, lostClaim, removeAbandoned } from "./PartialDirectory.ts"
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
  if (missing > free)
    return yield* new StoreFull({
      message: `The weights store needs ${missing} more bytes for this model, but only ${free} bytes are free. Ask the cluster administrator to free or enlarge the volume, then deploy again.`
    })
})

/** Maximum number of file names in a message. */
const maxNamedFiles = 3

const namesOf = (files: ReadonlyArray<RepositoryFile>): string => {
  const names = files.slice(0, maxNamedFiles).map(({ path }) => path)
  return `${names.join(", ")}${files.length > maxNamedFiles ? ` and ${files.length - maxNamedFiles} more` : ""}`
}

/** A download of a commit's files into a claimed directory. */
interface Download extends FetchOptions {
  readonly settings: HubSettings
  readonly manifest: string
  readonly claim: Claim
}

/** Ends a download whose directory turned out to be complete. */
const reuse = ({ claim, directory }: Download) =>
  Effect.andThen(
    noteUse(directory),
    onDisk(() => rm(claim.path, { recursive: true, force: true }))
  )

/** Verifies the changed files of an existing directory again. True if all are correct. */
const isRepaired = Effect.fnUntraced(function* ({ claim, commit, directory, files, manifest, repo }: Download) {
  if (!(yield* hasManifest(directory, manifest))) return false
  yield* Effect.logInfo(`${repo} at ${commit.slice(0, 7)} has changed since its verification. Its changed files are verified again.`)
  return yield* Effect.raceFirst(
    repairFiles(directory, claim.path, files, () => undefined),
    claim.beat
  )
})

/** Downloads the missing files. Fails if files differ from the commit. */
const downloadMissing = Effect.fnUntraced(function* ({ claim, commit, files, repo, settings, token }: Download, onBytes: (bytes: number) => void) {
  const { fileUrl } = connect(settings, token)
  const source = { settings, token, fileUrl: (path: string) => fileUrl(repo, commit, path) }
  const differing = yield* downloadFiles({ source, files, claim, onBytes }).pipe(
    Effect.scoped,
    Effect.raceFirst(claim.beat),
    // The volume filled up during the download. A new check reports how much is missing now.
    Effect.catchTag("StoreFull", (full) => Effect.andThen(checkSpace(claim.path, files, settings.chunkBytes), () => Effect.fail(full))),
    Effect.catchTag("HubAnswer", (answer) => refusalOf(answer, { repo, ref: commit, commit, hasToken: Option.isSome(token) }))
  )
  if (differing.length === 0) return
  const of = `${differing.length} of ${files.length} files ${differing.length === 1 ? "differs" : "differ"} from commit ${commit.slice(0, 7)}`
  return yield* new WeightsMismatch({ detail: `${of} after two downloads: ${namesOf(differing)}.` })
})

const totalOf = (files: ReadonlyArray<RepositoryFile>) => files.reduce((sum, { size }) => sum + size, 0)

/** Completes a claimed directory and publishes it. */
const fetchClaimed = Effect.fnUntraced(function* (download: Download) {
  const { claim, directory, files, manifest, onProgress = () => Effect.void, settings } = download
  const isPresent = isComplete(directory, manifest, files)
  if (yield* isPresent) return yield* reuse(download)
  yield* prepareDirectory(claim.path, manifest)
  if (yield* isRepaired(download)) return yield* reuse(download)
  yield* checkSpace(claim.path, files, settings.chunkBytes)

  const reporter = yield* makeReporter(totalOf(files), onProgress)
  yield* downloadMissing(download, reporter.add)
  if (!(yield* onDisk(claim.isHeld))) return yield* lostClaim
  yield* writeRecord(claim.path, files)
  yield* placeDirectory(claim.path, directory, isPresent)
  yield* noteUse(directory)
  yield* reporter.complete
  yield* removeAbandoned(directory)
})

/** The service's `fetch`. */
export const fetchFiles = (settings: HubSettings) =>
  Effect.fn("Hub.fetch")(function* (options: FetchOptions) {
    const { commit, directory, files, onProgress = () => Effect.void, repo, token } = options
    if (files.some(({ path }) => !isDownloaded(path)))
      return yield* unsupportedFormat("The list of files to download names one that serving does not need.", commit)
    if (!isRepoName(repo)) return yield* new HubRefusal({ reason: RefusalReason.RepositoryNotFound({ repo, hasToken: Option.isSome(token) }), commit })
    const manifest = manifestOf(repo, commit, files)
    const fresh = isFresh(directory, manifest, files)
    if (yield* fresh) return
    const claimed = yield* claimPartial(directory, fresh, onProgress({ bytes: 0, totalBytes: totalOf(files), waiting: true }))
    if (Option.isSome(claimed)) yield* fetchClaimed({ ...options, settings, manifest, claim: claimed.value })
  }, Effect.scoped)
