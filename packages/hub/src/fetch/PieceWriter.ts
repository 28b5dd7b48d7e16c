import { writeSync } from "node:fs"
import type { FileHandle } from "node:fs/promises"

/** Writes a piece of a file; the piece is its own until that is done. */
export type PieceWriter = (bytes: Uint8Array, at: number) => Promise<void>

/** Milliseconds that a piece takes of a store that is slow. */
const slow = 50
/** Milliseconds for which it then counts as slow. */
const slowFor = 10_000

const writeInThread = async (handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> => {
  let written = 0
  while (written < bytes.length) written += (await handle.write(bytes, written, bytes.length - written, position + written)).bytesWritten
}

const writeHere = ({ fd }: FileHandle, bytes: Uint8Array, position: number): void => {
  let written = 0
  while (written < bytes.length) written += writeSync(fd, bytes, written, bytes.length - written, position + written)
}

/**
 * Writes at once what a page cache takes at once: a hand-over to another thread costs as much as the write, and that thread finds the piece in no cache of its core.
 * A store that held one piece up is waited for in Node's threads for some time, by several pieces at once, so that nothing else waits with it. `now` in milliseconds.
 */
export const makePieceWriter = (handle: FileHandle, now: () => number = () => performance.now()): PieceWriter => {
  let slowUntil = Number.NEGATIVE_INFINITY
  return async (bytes, at) => {
    const begun = now()
    if (begun < slowUntil) return writeInThread(handle, bytes, at)
    writeHere(handle, bytes, at)
    const ended = now()
    if (ended - begun >= slow) slowUntil = ended + slowFor
  }
}
