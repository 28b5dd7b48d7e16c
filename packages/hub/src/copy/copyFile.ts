import { createHash } from "node:crypto"
import { closeSync, constants, fsyncSync, openSync, readSync, rmSync, writeSync } from "node:fs"

/** One file that is to be read to its end, and written elsewhere meanwhile where `target` names a place. */
export interface CopyTask {
  readonly source: string
  readonly target: string | null
  /** Bytes that it has: no more are read. */
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
 * Copies a file and hashes what it reads; the hash of a file that ends early is that of what there is. What is written is synced. It waits for its disks, so it has a
 * thread of its own where there is much to do. Throws what the file system throws.
 */
export const copyFile = ({ algorithm, prefix, size, source, target }: CopyTask, onBytes: (bytes: number) => void): string => {
  const hash = createHash(algorithm).update(prefix)
  const block = new Uint8Array(Math.min(blockBytes, Math.max(1, size)))
  const from = openSync(source, constants.O_RDONLY)
  try {
    // Another's file of that name, who may still write to it, is not touched.
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
