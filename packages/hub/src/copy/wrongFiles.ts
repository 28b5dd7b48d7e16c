import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"
import { expectedHash } from "../contentHash.ts"
import { hasFullSize, isAsRecorded, readRecord } from "../fetch/VerifiedRecord.ts"
import type { CopyThreads } from "./CopyThreads.ts"

/**
 * How existing files are checked. `recorded`: by the record of their verification, and byte for byte if they differ
 * from it. `full`: byte for byte.
 */
export type Verify = "recorded" | "full"

/** A task that reads and hashes a file in the form of its commit, and writes it to `target` if that is set. */
export const taskOf = (source: string, target: string | null, file: RepositoryFile) => {
  const lfs = file.sha256 !== null
  return { source, target, size: file.size, algorithm: lfs ? "sha256" : "sha1", prefix: lfs ? "" : `blob ${file.size}\0` } as const
}

/** The files that are missing or wrong. */
export const wrongFiles = Effect.fnUntraced(function* (directory: string, files: ReadonlyArray<RepositoryFile>, verify: Verify, threads: CopyThreads) {
  const record = yield* readRecord(directory)
  const good = yield* Effect.forEach(
    files,
    Effect.fnUntraced(function* (file) {
      if (!(yield* hasFullSize(directory, file))) return false
      if (verify === "recorded" && (yield* isAsRecorded(directory, record, file))) return true
      return (yield* threads.copy(taskOf(join(directory, file.path), null, file))) === expectedHash(file)
    }),
    { concurrency: threads.atOnce }
  )
  return files.filter((_, index) => good[index] !== true)
})
