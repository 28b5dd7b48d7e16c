import { constants } from "node:fs"
import { type FileHandle, mkdir, open, writeFile } from "node:fs/promises"
import { dirname } from "node:path"
import { crc32 } from "node:zlib"

/** The start of each frame. After damage, reading continues at the next mark. */
const mark = Buffer.from("SPL1")
const headLength = 12

/** Maximum size of a payload, bytes. */
export const maxPayload = 1024 * 1024

/** Bytes of one read: always more than the largest frame. */
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
  /** The offset of the next read. */
  readonly next: number
  /** Number of bytes that belong to no frame. */
  readonly damaged: number
}

/** The payload of the frame at `at`; `incomplete` if `bytes` ends within it. */
const frameAt = (bytes: Buffer, at: number): Buffer | "incomplete" | "damaged" => {
  const length = bytes.readUInt32LE(at + 4)
  if (length > maxPayload || !mark.equals(bytes.subarray(at, at + mark.length))) return "damaged"
  const end = at + headLength + length
  if (end > bytes.length) return "incomplete"
  const payload = bytes.subarray(at + headLength, end)
  return crc32(payload) === bytes.readUInt32LE(at + 8) ? payload : "damaged"
}

/** The complete frames of `bytes`, at most `limit`. `length`: the number of bytes read. */
const readFrames = (bytes: Buffer, limit: number) => {
  const payloads: Array<Buffer> = []
  let at = 0
  let damaged = 0
  // The possible start of an incomplete frame.
  let incompleteAt = -1
  while (at + headLength <= bytes.length && payloads.length < limit) {
    const frame = frameAt(bytes, at)
    if (frame === "incomplete") {
      if (incompleteAt === -1) incompleteAt = at
    } else if (frame !== "damaged") {
      payloads.push(frame)
      at += headLength + frame.length
      incompleteAt = -1
      continue
    }
    const next = bytes.indexOf(mark, at + 1)
    if (next === -1) break
    damaged += next - at
    at = next
  }
  return { payloads, length: incompleteAt === -1 ? at : incompleteAt, damaged: incompleteAt === -1 ? damaged : Math.max(0, damaged - (at - incompleteAt)) }
}

/**
 * Frames in an append-only file: mark, length, CRC-32, payload. An append is on disk when it completes. Opening the
 * file cuts off an incomplete frame at its end, left by a crash.
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
    // Also syncs the directory entry of the file.
    const parent = await open(folder, constants.O_RDONLY)
    await parent.sync().finally(() => parent.close())
    return file
  }

  /** Number of bytes on disk. */
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

  /**
   * Appends all payloads in one write. Rejects and leaves nothing in the file if the disk does not take all of them, or
   * if one of them is too long to be read again.
   */
  async append(payloads: ReadonlyArray<Buffer>): Promise<void> {
    if (payloads.some(({ length }) => length > maxPayload)) throw new Error(`A payload exceeds ${maxPayload} bytes.`)
    const bytes = Buffer.concat(payloads.map(frameOf))
    return this.#inTurn(async () => {
      // The remains of a failed write must be removed before the next one.
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

  /** Reads at most `limit` frames and about two megabytes from `at`; `next` equals `at` only at the end of the file. */
  async read(at: number, limit: number): Promise<Read> {
    const length = Math.min(readLength, this.#size - at)
    if (length <= 0) return { payloads: [], next: at, damaged: 0 }
    const { buffer, bytesRead } = await this.#handle.read(Buffer.allocUnsafe(length), 0, length, at)
    const read = readFrames(buffer.subarray(0, bytesRead), limit)
    if (read.length > 0) return { payloads: read.payloads, next: at + read.length, damaged: read.damaged }
    // No frame starts in these bytes: skip them.
    const passed = bytesRead === readLength ? readLength - headLength : bytesRead
    return { payloads: [], next: at + passed, damaged: passed }
  }

  /** Empties the file unless data was appended after `length`. Whether it was emptied. */
  clear(length: number): Promise<boolean> {
    return this.#inTurn(async () => {
      if (this.#size !== length) return false
      await this.#cut(0)
      return true
    })
  }

  /** Appends unusable payloads to a separate file in the same folder. */
  async setAside(payloads: ReadonlyArray<Buffer>): Promise<void> {
    await writeFile(`${this.path}.refused`, Buffer.concat(payloads.map(frameOf)), { flag: "a", mode: 0o600, flush: true })
  }

  async close(): Promise<void> {
    await this.#inTurn(() => this.#handle.close())
  }
}
