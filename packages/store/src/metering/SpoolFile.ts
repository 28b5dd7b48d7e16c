import { constants } from "node:fs"
import { type FileHandle, mkdir, open, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { crc32 } from "node:zlib"

/** Begins a frame: after damage, reading goes on at the next one. */
const mark = Buffer.from("SPL1")
const headLength = 12

/** Bytes of the largest payload. */
export const maxPayload = 1024 * 1024

/** Bytes that one read takes: always more than the largest frame. */
const readLength = 2 * maxPayload

const frameOf = (payload: Buffer): Buffer => {
  const head = Buffer.alloc(headLength)
  mark.copy(head)
  head.writeUInt32LE(payload.length, 4)
  head.writeUInt32LE(crc32(payload), 8)
  return Buffer.concat([head, payload])
}

export interface Read {
  readonly payloads: ReadonlyArray<Buffer>
  /** Where the next read begins. */
  readonly next: number
  /** Bytes between frames that belong to none. */
  readonly damaged: number
}

/** The whole frames of `bytes`, at most `limit`; `length`: how far they were read. */
const readFrames = (bytes: Buffer, limit: number) => {
  const payloads: Array<Buffer> = []
  let at = 0
  let damaged = 0
  // Where a frame that is not complete yet may begin.
  let torn = -1
  while (at + headLength <= bytes.length && payloads.length < limit) {
    const length = bytes.readUInt32LE(at + 4)
    const whole = mark.equals(bytes.subarray(at, at + mark.length)) && length <= maxPayload
    const end = at + headLength + length
    if (whole && end <= bytes.length && crc32(bytes.subarray(at + headLength, end)) === bytes.readUInt32LE(at + 8)) {
      payloads.push(bytes.subarray(at + headLength, end))
      at = end
      torn = -1
      continue
    }
    if (whole && end > bytes.length && torn === -1) torn = at
    const next = bytes.indexOf(mark, at + 1)
    if (next === -1) break
    damaged += next - at
    at = next
  }
  return { payloads, length: torn === -1 ? at : torn, damaged: torn === -1 ? damaged : Math.max(0, damaged - (at - torn)) }
}

/**
 * Frames in a file that is only appended to: a mark, length, CRC-32, payload. An append is on the disk when it completes. What a crash left torn at the end is cut off when
 * the file is opened.
 */
export class SpoolFile {
  readonly path: string
  readonly #handle: FileHandle
  #size: number
  #turn: Promise<unknown> = Promise.resolve()
  #isSpoilt = false

  private constructor(path: string, handle: FileHandle, size: number) {
    this.path = path
    this.#handle = handle
    this.#size = size
  }

  static async open(path: string): Promise<SpoolFile> {
    const folder = dirname(path)
    await mkdir(folder, { recursive: true })
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    const { size } = await handle.stat()
    const file = new SpoolFile(path, handle, size)
    let end = 0
    for (let at = 0; at < size; ) {
      const { next, payloads } = await file.read(at, Number.POSITIVE_INFINITY)
      if (payloads.length > 0) end = next
      at = next
    }
    if (end < size) await file.#cut(end)
    // The folder's entry for the file, too.
    const parent = await open(folder, constants.O_RDONLY)
    await parent.sync().finally(() => parent.close())
    return file
  }

  /** Bytes that are on the disk. */
  get size(): number {
    return this.#size
  }

  #inTurn<A>(work: () => Promise<A>): Promise<A> {
    const done = this.#turn.then(work, work)
    this.#turn = done.catch(() => undefined)
    return done
  }

  async #cut(length: number) {
    await this.#handle.truncate(length)
    await this.#handle.datasync()
    this.#size = length
  }

  /** Appends in one write; rejects where the disk does not take all of it, or one of them is longer than can be read again, and then nothing of it stays. */
  async append(payloads: ReadonlyArray<Buffer>): Promise<void> {
    if (payloads.some(({ length }) => length > maxPayload)) throw new Error(`A payload has more than ${maxPayload} bytes.`)
    const bytes = Buffer.concat(payloads.map(frameOf))
    return this.#inTurn(async () => {
      // What a failed write left behind must go before anything follows it.
      if (this.#isSpoilt) {
        await this.#cut(this.#size)
        this.#isSpoilt = false
      }
      try {
        for (let done = 0; done < bytes.length; ) done += (await this.#handle.write(bytes, done, bytes.length - done, this.#size + done)).bytesWritten
        await this.#handle.datasync()
      } catch (error) {
        this.#isSpoilt = true
        throw error
      }
      this.#size += bytes.length
    })
  }

  /** Frames from `at` on, at most `limit` and about two megabytes; `next` is `at` at the end of the file only. */
  async read(at: number, limit: number): Promise<Read> {
    const length = Math.min(readLength, this.#size - at)
    if (length <= 0) return { payloads: [], next: at, damaged: 0 }
    const { buffer, bytesRead } = await this.#handle.read(Buffer.allocUnsafe(length), 0, length, at)
    const read = readFrames(buffer.subarray(0, bytesRead), limit)
    if (read.length > 0) return { payloads: read.payloads, next: at + read.length, damaged: read.damaged }
    // No frame begins in all of it: whatever that was, it is passed over.
    const passed = bytesRead === readLength ? readLength - headLength : bytesRead
    return { payloads: [], next: at + passed, damaged: passed }
  }

  /** Empties the file, unless something was appended after `length`; whether it did. */
  clear(length: number): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#size !== length) return false
      await this.#cut(0)
      return true
    })
  }

  /** Puts payloads aside that nobody could use, in a file of their own beside this one. */
  async putAside(payloads: ReadonlyArray<Buffer>): Promise<void> {
    await writeFile(`${this.path}.refused`, Buffer.concat(payloads.map(frameOf)), { flag: "a", mode: 0o600, flush: true })
  }

  async close(): Promise<void> {
    await this.#inTurn(() => this.#handle.close())
  }
}
