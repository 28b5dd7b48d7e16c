import { lstat, readFile, rename, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { onDisk } from "./onDisk.ts"

export const recordName = ".seatrial-verified.json"
/** The name that copies on nodes used at first. */
const earlierName = ".seatrial-copy.json"

/**
 * The state of a commit's files at their verification: inode and times of the last change of content (mtime) and file
 * (ctime) in nanoseconds, by path. Every write changes them, and the ctime cannot be set back. They do not detect
 * changes below the file system.
 */
const VerifiedRecord = Schema.Record(Schema.String, Schema.Struct({ inode: Schema.String, changed: Schema.String, status: Schema.optionalKey(Schema.String) }))
export type VerifiedRecord = typeof VerifiedRecord.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(VerifiedRecord))

const stateOf = async (path: string, size: number) => {
  const stats = await lstat(path, { bigint: true }).catch(() => null)
  if (stats === null || !stats.isFile() || stats.size !== BigInt(size)) return null
  return { inode: String(stats.ino), changed: String(stats.mtimeNs), status: String(stats.ctimeNs) }
}

/** Reads the record of a commit; empty if it cannot be read. */
export const readRecord = (directory: string): Effect.Effect<VerifiedRecord> =>
  Effect.promise(async () => {
    const read = (name: string) => readFile(join(directory, name), "utf8")
    const text = await read(recordName).catch(() => read(earlierName).catch(() => ""))
    return Option.getOrElse(decode(text), () => ({}))
  })

/** When all files were last verified byte for byte, in Unix milliseconds; null if that was never recorded. */
export const verifiedAt = (directory: string): Effect.Effect<number | null> =>
  Effect.promise(() =>
    stat(join(directory, recordName)).then(
      ({ mtimeMs }) => mtimeMs,
      () => null
    )
  )

/** Whether a file is unchanged since its verification. */
export const isAsRecorded = (directory: string, record: VerifiedRecord, { path, size }: RepositoryFile): Effect.Effect<boolean> =>
  Effect.promise(async () => {
    const now = await stateOf(join(directory, path), size)
    const then = record[path]
    if (now === null || then === undefined) return false
    return now.inode === then.inode && now.changed === then.changed && (then.status === undefined || now.status === then.status)
  })

/** Whether all of these files are unchanged since their verification. */
export const areAsRecorded = Effect.fnUntraced(function* (directory: string, files: ReadonlyArray<RepositoryFile>) {
  const record = yield* readRecord(directory)
  for (const file of files) if (!(yield* isAsRecorded(directory, record, file))) return false
  return true
})

/** Whether a file exists with its full size. */
export const hasFullSize = (directory: string, { path, size }: RepositoryFile): Effect.Effect<boolean> =>
  Effect.promise(async () => (await stateOf(join(directory, path), size)) !== null)

/** Records the state of a commit's files after all of them were verified. */
export const writeRecord = (directory: string, files: ReadonlyArray<RepositoryFile>) =>
  onDisk(async () => {
    const record: Record<string, VerifiedRecord[string]> = {}
    for (const { path, size } of files) {
      const state = await stateOf(join(directory, path), size)
      if (state !== null) record[path] = state
    }
    await writeFile(join(directory, `${recordName}.new`), JSON.stringify(record), { flush: true })
    await rename(join(directory, `${recordName}.new`), join(directory, recordName))
  })
