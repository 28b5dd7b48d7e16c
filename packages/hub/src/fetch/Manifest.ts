import { readFile, stat, utimes } from "node:fs/promises"
import { join } from "node:path"
import { type Commit, RepositoryFile } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { manifestSha256 } from "../manifestSha256.ts"
import { areAsRecorded } from "./VerifiedRecord.ts"

export const manifestName = ".seatrial-manifest.json"

const sorted = (files: ReadonlyArray<RepositoryFile>) =>
  files.map(({ blob_id, path, sha256, size }) => ({ path, size, blob_id, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1))

/** The manifest of a downloaded commit: which files belong to it, in path order, and what each must hash to. */
export const manifestOf = (repo: string, commit: Commit, files: ReadonlyArray<RepositoryFile>): string =>
  `${JSON.stringify({ version: 1, repo, commit, files: sorted(files) }, null, 2)}\n`

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ repo: Schema.String, commit: Schema.String, files: Schema.Array(RepositoryFile) }))
)

/** The files that a directory says it holds of a commit; none where it does not. */
export const listedFiles = (directory: string, repo: string, commit: string) =>
  Effect.map(
    Effect.promise(() => readFile(join(directory, manifestName), "utf8").catch(() => "")),
    (text) => Option.filter(decode(text), (stored) => stored.repo === repo && stored.commit === commit).pipe(Option.map(({ files }) => files))
  )

/** The files that a directory of this commit says it holds, where they are those whose list has that hash: then nobody has to ask the hub for them. */
export const storedFiles = (directory: string, repo: string, commit: Commit, sha256: string) =>
  Effect.map(
    listedFiles(directory, repo, commit),
    Option.filter((files) => manifestSha256(files) === sha256)
  )

export const hasManifest = (directory: string, manifest: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    readFile(join(directory, manifestName), "utf8").then(
      (text) => text === manifest,
      () => false
    )
  )

/** Whether a directory holds this manifest, and each of its files is what it was when it was verified: hashes are not read again. */
export const isComplete = Effect.fnUntraced(function* (directory: string, manifest: string, files: ReadonlyArray<RepositoryFile>) {
  return (yield* hasManifest(directory, manifest)) && (yield* areAsRecorded(directory, files))
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

/** Records that a commit is used at that time, Unix milliseconds; by default now. A time that is recorded never becomes earlier. */
export const noteUse = Effect.fnUntraced(function* (directory: string, at?: number) {
  const seconds = Math.max(at ?? (yield* Clock.currentTimeMillis), (at === undefined ? null : yield* lastUsed(directory)) ?? 0) / 1000
  yield* Effect.promise(() => utimes(join(directory, manifestName), seconds, seconds).catch(() => undefined))
})
