import { writeSync } from "node:fs"
import type { FileHandle } from "node:fs/promises"

/** Writes a piece of a file. It owns the buffer until the promise resolves. */
export type PieceWriter = (bytes: Uint8Array, at: number) => Promise<void>

/** Milliseconds per piece from which a store counts as slow. */
const slow = 50
/** Milliseconds for which it then stays in the slow mode. */
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
 * Writes synchronously while the page cache accepts pieces immediately: passing a piece to another thread costs as much
 * as the write, and moves it out of the core's cache. After a slow write, pieces are written in Node's thread pool for
 * some time, so that nothing else is blocked. `now` in milliseconds.
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
