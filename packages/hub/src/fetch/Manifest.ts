import { readFile, stat, utimes } from "node:fs/promises"
import { join } from "node:path"
import { type Commit, RepositoryFile } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { manifestSha256 } from "../manifestSha256.ts"

export const manifestName = ".seatrial-manifest.json"

const sorted = (files: ReadonlyArray<RepositoryFile>) =>
  files.map(({ blob_id, path, sha256, size }) => ({ path, size, blob_id, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1))

/** The manifest of a downloaded commit: which files belong to it, in path order, and what each must hash to. */
export const manifestOf = (repo: string, commit: Commit, files: ReadonlyArray<RepositoryFile>): string =>
  `${JSON.stringify({ version: 1, repo, commit, files: sorted(files) }, null, 2)}\n`

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ repo: Schema.String, commit: Schema.String, files: Schema.Array(RepositoryFile) }))
)

/** The files that a directory of this commit says it holds, where they are those whose list has that hash: then nobody has to ask the hub for them. */
export const storedFiles = Effect.fnUntraced(function* (directory: string, repo: string, commit: Commit, sha256: string) {
  const text = yield* Effect.promise(() => readFile(join(directory, manifestName), "utf8").catch(() => ""))
  return Option.filter(decode(text), (stored) => stored.repo === repo && stored.commit === commit && manifestSha256(stored.files) === sha256).pipe(
    Option.map(({ files }) => files)
  )
})

export const hasManifest = (directory: string, manifest: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    readFile(join(directory, manifestName), "utf8").then(
      (text) => text === manifest,
      () => false
    )
  )

/** Whether a directory holds this manifest and each of its files at its size. It only comes to be by the rename of a verified download, so hashes are not read again. */
export const isComplete = Effect.fnUntraced(function* (directory: string, manifest: string, files: ReadonlyArray<RepositoryFile>) {
  if (!(yield* hasManifest(directory, manifest))) return false
  return yield* Effect.promise(async () => {
    for (const { path, size } of files) {
      const found = await stat(join(directory, path)).catch(() => null)
      if (found === null || !found.isFile() || found.size !== size) return false
    }
    return true
  })
})

/** Milliseconds after its last use in which a commit counts as fresh: clean-up removes nothing of less than a day. */
const freshFor = 3_600_000

/** Whether a directory is complete and was used so lately that no clean-up can be about to remove it. */
export const isFresh = Effect.fnUntraced(function* (directory: string, manifest: string, files: ReadonlyArray<RepositoryFile>) {
  const now = yield* Clock.currentTimeMillis
  const used = yield* lastUsed(directory)
  return used !== null && now - used < freshFor && (yield* isComplete(directory, manifest, files))
})

/** When a commit was used last, Unix milliseconds: its manifest's time. Null where there is none. */
export const lastUsed = (directory: string): Effect.Effect<number | null> =>
  Effect.promise(() =>
    stat(join(directory, manifestName)).then(
      ({ mtimeMs }) => mtimeMs,
      () => null
    )
  )

/** Notes that a commit is used now. */
export const noteUse = Effect.fnUntraced(function* (directory: string) {
  const seconds = (yield* Clock.currentTimeMillis) / 1000
  yield* Effect.promise(() => utimes(join(directory, manifestName), seconds, seconds).catch(() => undefined))
})
