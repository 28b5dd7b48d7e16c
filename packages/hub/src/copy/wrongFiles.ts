import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"
import { expectedHash } from "../contentHash.ts"
import { isAsRecorded, isThereWhole, readRecord } from "../fetch/VerifiedRecord.ts"
import type { CopyThreads } from "./CopyThreads.ts"

/** How files that are there are looked at: whether they are what they were when they were verified, and byte for byte only where not; or byte for byte in any case. */
export type Verify = "recorded" | "full"

/** A file that is to be read and hashed as its commit names it, and written to `target` where there is one. */
export const taskOf = (source: string, target: string | null, file: RepositoryFile) => {
  const lfs = file.sha256 !== null
  return { source, target, size: file.size, algorithm: lfs ? "sha256" : "sha1", prefix: lfs ? "" : `blob ${file.size}\0` } as const
}

/** Of these files the ones that are not there as they are to be. */
export const wrongFiles = Effect.fnUntraced(function* (directory: string, files: ReadonlyArray<RepositoryFile>, verify: Verify, threads: CopyThreads) {
  const record = yield* readRecord(directory)
  const good = yield* Effect.forEach(
    files,
    Effect.fnUntraced(function* (file) {
      if (!(yield* isThereWhole(directory, file))) return false
      if (verify === "recorded" && (yield* isAsRecorded(directory, record, file))) return true
      return (yield* threads.copy(taskOf(join(directory, file.path), null, file))) === expectedHash(file)
    }),
    { concurrency: threads.atOnce }
  )
  return files.filter((_, index) => good[index] !== true)
})
