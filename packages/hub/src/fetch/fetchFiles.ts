import { readdir, rename, rm, stat, statfs, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Commit, RepositoryFile } from "@seatrial/domain"
import { Effect, Option, type Redacted } from "effect"
import { HubUnavailable, WeightsMismatch } from "../failures.ts"
import { connect } from "../HubConnection.ts"
import type { HubSettings } from "../HubSettings.ts"
import { isRepoName, refusalOf, unknownRepository, unsupportedFormat } from "../screening.ts"
import { isServingFile } from "../servingFiles.ts"
import { downloadFile } from "./downloadFile.ts"
import { hasManifest, isComplete, manifestName, manifestOf } from "./Manifest.ts"
import { isOccupied, onDisk, syncDirectory } from "./onDisk.ts"
import { claimPartial, removeAbandoned } from "./PartialDirectory.ts"

interface FetchOptions {
  readonly repo: string
  readonly commit: Commit
  readonly files: ReadonlyArray<RepositoryFile>
  readonly directory: string
  readonly token: Option.Option<Redacted.Redacted<string>>
  readonly onProgress?: (progress: { readonly bytes: number; readonly totalBytes: number }) => Effect.Effect<void>
}

const sizeOf = (path: string): Promise<number | null> =>
  stat(path).then(
    ({ size }) => size,
    () => null
  )

/** Empties a partial directory that was begun for other files, and states which files it is for. */
const prepare = Effect.fnUntraced(function* (partial: string, manifest: string) {
  if (yield* hasManifest(partial, manifest)) return
  yield* onDisk(async () => {
    for (const name of await readdir(partial)) await rm(join(partial, name), { recursive: true, force: true })
    await writeFile(join(partial, manifestName), manifest, { flush: true })
  })
})

const checkSpace = Effect.fnUntraced(function* (partial: string, files: ReadonlyArray<RepositoryFile>) {
  const { free, missing } = yield* onDisk(async () => {
    const { bavail, bsize } = await statfs(partial)
    let missing = 0
    for (const { path, size } of files)
      missing += Math.max(0, size - ((await sizeOf(join(partial, path))) ?? (await sizeOf(join(partial, `${path}.part`))) ?? 0))
    return { free: bavail * bsize, missing }
  })
  if (missing > free) return yield* new HubUnavailable({ message: `The files of the model need ${missing} bytes more, and ${free} bytes are free.` })
})

/** Makes the verified partial directory visible. Where another download was first with the same files, theirs stays. */
const place = Effect.fnUntraced(function* (partial: string, directory: string, isThere: Effect.Effect<boolean>) {
  const moved = () =>
    onDisk(() =>
      rename(partial, directory).then(
        () => true,
        (error) => (isOccupied(error) ? false : Promise.reject(error))
      )
    )
  yield* onDisk(() => syncDirectory(partial))
  if (!(yield* moved())) {
    if (yield* isThere) return yield* onDisk(() => rm(partial, { recursive: true, force: true }))
    // What is in the way is not a download of these files, or somebody changed it.
    // Its new name is that of a partial directory, so that whoever comes next removes it where this process dies before.
    const aside = `${partial}0`
    yield* onDisk(() => rename(directory, aside))
    if (!(yield* moved())) return yield* new HubUnavailable({ message: "The directory of the model is being replaced by somebody else." })
    yield* onDisk(() => rm(aside, { recursive: true, force: true }))
  }
  yield* onDisk(() => syncDirectory(dirname(directory)))
})

/** The service's `fetch`. */
export const fetchFiles = (settings: HubSettings) =>
  Effect.fn("Hub.fetch")(function* ({ commit, directory, files, onProgress, repo, token }: FetchOptions) {
    const foreign = files.find(({ path }) => !isServingFile(path))
    if (foreign !== undefined) return yield* unsupportedFormat("The list of files to download names one that serving does not need.", commit)
    if (!isRepoName(repo)) return yield* unknownRepository({ repo, commit, hasToken: Option.isSome(token) })
    const manifest = manifestOf(repo, commit, files)
    const isThere = isComplete(directory, manifest, files)
    if (yield* isThere) return

    const connection = connect(settings, token)
    const partial = yield* claimPartial(directory)
    yield* prepare(partial, manifest)
    yield* checkSpace(partial, files)

    const totalBytes = files.reduce((sum, { size }) => sum + size, 0)
    let bytes = 0
    const onBytes = (more: number) => {
      bytes += more
      return onProgress === undefined ? Effect.void : onProgress({ bytes, totalBytes })
    }
    const matches = yield* Effect.forEach(
      files,
      Effect.fnUntraced(function* (file) {
        const target = join(partial, file.path)
        // A file that has its own name was verified before it got it.
        if ((yield* onDisk(() => sizeOf(target))) === file.size) return yield* Effect.as(onBytes(file.size), true)
        return yield* downloadFile({ connection, settings, url: connection.fileUrl(repo, commit, file.path), file, target, onBytes })
      }),
      { concurrency: settings.concurrency }
    ).pipe(Effect.catchTag("HubAnswer", (answer) => refusalOf(answer, { repo, ref: commit, commit, hasToken: Option.isSome(token) })))
    const differing = matches.filter((match) => !match).length
    if (differing > 0) {
      const detail = `${differing} of ${files.length} files ${differing === 1 ? "differs" : "differ"} from commit ${commit.slice(0, 7)} after two downloads.`
      return yield* new WeightsMismatch({ detail })
    }
    yield* place(partial, directory, isThere)
    yield* removeAbandoned(directory)
  }, Effect.scoped)
