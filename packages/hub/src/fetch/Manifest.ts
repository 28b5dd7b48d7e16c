import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import type { Commit, RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"

export const manifestName = ".seatrial-manifest.json"

const sorted = (files: ReadonlyArray<RepositoryFile>) =>
  files.map(({ blob_id, path, sha256, size }) => ({ path, size, blob_id, sha256 })).sort((a, b) => (a.path < b.path ? -1 : 1))

/** The manifest of a downloaded commit: which files belong to it, in path order, and what each must hash to. */
export const manifestOf = (repo: string, commit: Commit, files: ReadonlyArray<RepositoryFile>): string =>
  `${JSON.stringify({ version: 1, repo, commit, files: sorted(files) }, null, 2)}\n`

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
