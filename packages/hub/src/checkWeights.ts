import type { Commit } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { makeCopyThreads } from "./copy/CopyThreads.ts"
import { type Verify, wrongFiles } from "./copy/wrongFiles.ts"
import { WeightsAbsent, WeightsMismatch } from "./failures.ts"
import { storedFiles } from "./fetch/Manifest.ts"

export interface CheckOptions {
  readonly repo: string
  readonly commit: Commit
  /** SHA-256 of the file list. */
  readonly manifest: string
  /** Folder of the files. */
  readonly directory: string
  readonly verify: Verify
}

/**
 * Checks that a commit's files in the weights store are the verified ones, and returns their number. It compares size,
 * inode and times of each file, and rereads the bytes of files that differ from the record. Reads only.
 */
export const checkWeights = Effect.fn("checkWeights")(function* ({ commit, directory, manifest, repo, verify }: CheckOptions) {
  const stored = yield* storedFiles(directory, repo, commit, manifest)
  if (Option.isNone(stored)) return yield* new WeightsAbsent({ message: `The weights store has no complete copy of ${repo} at ${commit.slice(0, 7)}.` })
  const files = stored.value
  const threads = yield* makeCopyThreads(
    files.length,
    files.reduce((sum, { size }) => sum + size, 0),
    () => undefined
  )
  const [wrong, ...rest] = yield* wrongFiles(directory, files, verify, threads)
  if (wrong === undefined) return files.length
  const which = rest.length === 0 ? `${wrong.path} of` : `${wrong.path} and ${rest.length} more files of`
  return yield* new WeightsMismatch({
    detail: `${which} ${repo} at ${commit.slice(0, 7)} in the weights store ${rest.length === 0 ? "has" : "have"} changed since the download.`
  })
}, Effect.scoped)
