import { link } from "node:fs/promises"
import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"
import { makeCopyThreads } from "../copy/CopyThreads.ts"
import { wrongFiles } from "../copy/wrongFiles.ts"
import { writeRecord } from "./VerifiedRecord.ts"

/**
 * Checks a directory with a commit that differs from the record of its verification, and hashes the changed files. If
 * all are correct, it updates the record and returns true. Otherwise it hard-links the correct files into `partial`, so
 * that a download adds only the rest.
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
    // If the file system has no hard links, the hub sends the file again. An existing target was also verified.
    if (!wrong.has(path)) yield* Effect.promise(() => link(join(directory, path), join(partial, path)).catch(() => undefined))
  }
  return false
}, Effect.scoped)
