import { readFile, stat, utimes } from "node:fs/promises"
import { join } from "node:path"
import { type Commit, RepositoryFile } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { manifestSha256 } from "../manifestSha256.ts"
import { areAsRecorded } from "./VerifiedRecord.ts"

export const manifestName = ".seatrial-manifest.json"

const sorted = (files: ReadonlyArray<RepositoryFile>) =>
  files.map(({ blob_id, path, sha256, size }) => ({ path, size, blob_id, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1))

/** The manifest of a downloaded commit: its files in path order, and their hashes. */
export const manifestOf = (repo: string, commit: Commit, files: ReadonlyArray<RepositoryFile>): string =>
  `${JSON.stringify({ version: 1, repo, commit, files: sorted(files) }, null, 2)}\n`

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ repo: Schema.String, commit: Schema.String, files: Schema.Array(RepositoryFile) }))
)

/** The files of a commit by a directory's manifest; none without a valid manifest. */
export const listedFiles = (directory: string, repo: string, commit: string) =>
  Effect.map(
    Effect.promise(() => readFile(join(directory, manifestName), "utf8").catch(() => "")),
    (text) => Option.filter(decode(text), (stored) => stored.repo === repo && stored.commit === commit).pipe(Option.map(({ files }) => files))
  )

/** The files of a commit by a directory's manifest, if their list has this hash. The hub is then not needed. */
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

/**
 * Whether a directory has this manifest and each file is unchanged since its verification. Files are not hashed again.
 */
export const isComplete = Effect.fnUntraced(function* (directory: string, manifest: string, files: ReadonlyArray<RepositoryFile>) {
  return (yield* hasManifest(directory, manifest)) && (yield* areAsRecorded(directory, files))
})

/**
 * Milliseconds after its last use during which a commit counts as fresh. Clean-up only removes commits unused for at
 * least a day.
 */
const freshFor = 3_600_000

/** Whether a directory is complete and was used so recently that no clean-up can be about to remove it. */
export const isFresh = Effect.fnUntraced(function* (directory: string, manifest: string, files: ReadonlyArray<RepositoryFile>) {
  const now = yield* Clock.currentTimeMillis
  const used = yield* lastUsed(directory)
  return used !== null && now - used < freshFor && (yield* isComplete(directory, manifest, files))
})

/** When a commit was last used, in Unix milliseconds: the time of its manifest. Null without a manifest. */
export const lastUsed = (directory: string): Effect.Effect<number | null> =>
  Effect.promise(() =>
    stat(join(directory, manifestName)).then(
      ({ mtimeMs }) => mtimeMs,
      () => null
    )
  )

/** Records that a commit is used at this time (Unix milliseconds; default: now). A recorded time never decreases. */
export const noteUse = Effect.fnUntraced(function* (directory: string, at?: number) {
  const seconds = Math.max(at ?? (yield* Clock.currentTimeMillis), (at === undefined ? null : yield* lastUsed(directory)) ?? 0) / 1000
  yield* Effect.promise(() => utimes(join(directory, manifestName), seconds, seconds).catch(() => undefined))
})
