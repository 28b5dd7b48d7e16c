import { createHash } from "node:crypto"
import { constants, type Stats } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"

/** A file of the machine, as it was when its repository was read. `path` has no links. */
export interface DiskFile {
  readonly path: string
  /** Bytes. */
  readonly size: number
  readonly inode: number
  readonly modifiedMillis: number
}

export const diskFile = (path: string, { ino, mtimeMs, size }: Stats): DiskFile => ({ path, size, inode: ino, modifiedMillis: mtimeMs })

const isUnchanged = (file: DiskFile, { ino, mtimeMs, size }: Stats): boolean => ino === file.inode && mtimeMs === file.modifiedMillis && size === file.size

/** Opens the file. Null if it was changed or replaced, so that its hash may be wrong. */
export const openUnchanged = async (file: DiskFile): Promise<FileHandle | null> => {
  const handle = await open(file.path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => null)
  if (handle === null) return null
  if (isUnchanged(file, await handle.stat())) return handle
  await handle.close()
  return null
}

const pieceBytes = 2 ** 20

/** The bytes from `from` (inclusive) to `to` (exclusive), in chunks. Closes the handle at the end. */
export const readHandle = (handle: FileHandle, from: number, to: number): AsyncIterable<Uint8Array> | Iterable<Uint8Array> => {
  // The end of a stream is inclusive, so an empty one cannot be expressed.
  if (from < to) return handle.createReadStream({ start: from, end: to - 1, highWaterMark: pieceBytes })
  void handle.close()
  return []
}

/** The SHA-256 of the file. Null if it was changed. */
export const hashFile = async (file: DiskFile): Promise<string | null> => {
  const handle = await openUnchanged(file)
  if (handle === null) return null
  const hash = createHash("sha256")
  for await (const piece of readHandle(handle, 0, file.size)) hash.update(piece)
  const again = await openUnchanged(file)
  await again?.close()
  return again === null ? null : hash.digest("hex")
}
