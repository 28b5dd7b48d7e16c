import { lstat, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { RepositoryFile } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { onDisk } from "../fetch/onDisk.ts"

const recordName = ".seatrial-copy.json"

/** What the files of a verified copy were when they were verified: inode and time of the last change, in nanoseconds, by path. Whoever writes to a file changes them. */
const CopyRecord = Schema.Record(Schema.String, Schema.Struct({ inode: Schema.String, changed: Schema.String }))
export type CopyRecord = typeof CopyRecord.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(CopyRecord))

const look = async (path: string, size: number) => {
  const found = await lstat(path, { bigint: true }).catch(() => null)
  if (found === null || !found.isFile() || found.size !== BigInt(size)) return null
  return { inode: String(found.ino), changed: String(found.mtimeNs) }
}

/** What was written down of a copy; nothing where that cannot be read. */
export const readRecord = (directory: string): Effect.Effect<CopyRecord> =>
  Effect.promise(async () => Option.getOrElse(decode(await readFile(join(directory, recordName), "utf8").catch(() => "")), () => ({})))

/** Whether a file is what it was when it was verified. */
export const isAsRecorded = (directory: string, record: CopyRecord, { path, size }: RepositoryFile): Effect.Effect<boolean> =>
  Effect.promise(async () => {
    const now = await look(join(directory, path), size)
    const then = record[path]
    return now !== null && then !== undefined && now.inode === then.inode && now.changed === then.changed
  })

/** Whether a file is there at its size. */
export const isThereWhole = (directory: string, { path, size }: RepositoryFile): Effect.Effect<boolean> =>
  Effect.promise(async () => (await look(join(directory, path), size)) !== null)

/** Writes down what the files of a copy are now that all of them were verified. */
export const writeRecord = (directory: string, files: ReadonlyArray<RepositoryFile>) =>
  onDisk(async () => {
    const record: Record<string, { readonly inode: string; readonly changed: string }> = {}
    for (const { path, size } of files) {
      const seen = await look(join(directory, path), size)
      if (seen !== null) record[path] = seen
    }
    await writeFile(join(directory, `${recordName}.new`), JSON.stringify(record), { flush: true })
    await rename(join(directory, `${recordName}.new`), join(directory, recordName))
  })
