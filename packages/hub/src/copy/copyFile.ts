import { createHash } from "node:crypto"
import { closeSync, constants, fsyncSync, openSync, readSync, rmSync, writeSync } from "node:fs"

/** A file to read completely and, if `target` is set, to write there. */
export interface CopyTask {
  readonly source: string
  readonly target: string | null
  /** Size of the file; no further bytes are read. */
  readonly size: number
  readonly algorithm: "sha256" | "sha1"
  /** Hashed before the content. */
  readonly prefix: string
}

const blockBytes = 1024 * 1024

const writeAll = (file: number, bytes: Uint8Array, position: number) => {
  let written = 0
  while (written < bytes.length) written += writeSync(file, bytes, written, bytes.length - written, position + written)
}

/**
 * Copies a file and hashes the bytes that it reads. If the file ends early, the hash covers the existing bytes. Written
 * data is synced. It blocks on the disks, so larger copies run in a thread. Throws file system errors.
 */
export const copyFile = ({ algorithm, prefix, size, source, target }: CopyTask, onBytes: (bytes: number) => void): string => {
  const hash = createHash(algorithm).update(prefix)
  const block = new Uint8Array(Math.min(blockBytes, Math.max(1, size)))
  const from = openSync(source, constants.O_RDONLY)
  try {
    // Remove the name instead of overwriting: another process may still write to the old file.
    if (target !== null) rmSync(target, { force: true })
    const to = target === null ? null : openSync(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644)
    try {
      let at = 0
      while (at < size) {
        const bytes = readSync(from, block, 0, Math.min(block.length, size - at), at)
        if (bytes === 0) break
        const read = block.subarray(0, bytes)
        hash.update(read)
        if (to !== null) writeAll(to, read, at)
        at += bytes
        onBytes(bytes)
      }
      if (to !== null) fsyncSync(to)
    } finally {
      if (to !== null) closeSync(to)
    }
  } finally {
    closeSync(from)
  }
  return hash.digest("hex")
}
