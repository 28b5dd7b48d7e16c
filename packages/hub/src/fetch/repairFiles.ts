import { link } from "node:fs/promises"
import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"
import { makeCopyThreads } from "../copy/CopyThreads.ts"
import { wrongFiles } from "../copy/wrongFiles.ts"
import { writeRecord } from "./VerifiedRecord.ts"

/**
 * Looks at a directory that holds a commit, as it seems, but not as it was written down when it was verified: hashes what has changed. True where all of it is the
 * commit's: then that is written down. Else what is right of it is put into `partial` under its name, without a copy, so that a download brings only the rest.
 */
export const repairFiles = Effect.fnUntraced(function* (
  directory: string,
  partial: string,
  files: ReadonlyArray<RepositoryFile>,
  onBytes: (bytes: number) => void
) {
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  const threads = yield* makeCopyThreads(files.length, bytes, onBytes)
  const wrong = new Set((yield* wrongFiles(directory, files, "recorded", threads)).map(({ path }) => path))
  if (wrong.size === 0) {
    yield* writeRecord(directory, files)
    return true
  }
  for (const { path } of files) {
    // A file system without links gets the file from the hub again; a file that is there already was verified too.
    if (!wrong.has(path)) yield* Effect.promise(() => link(join(directory, path), join(partial, path)).catch(() => undefined))
  }
  return false
}, Effect.scoped)
