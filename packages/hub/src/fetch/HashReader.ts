import { createHash, type Hash } from "node:crypto"
import { closeSync, openSync, readSync } from "node:fs"

export type HashMessage =
  | { readonly kind: "open"; readonly id: number; readonly path: string; readonly algorithm: "sha256" | "sha1"; readonly prefix: string; readonly size: number }
  | { readonly kind: "advance"; readonly id: number; readonly to: number }
  | { readonly kind: "drop"; readonly id: number }

export type HashResult = { readonly id: number; readonly digest: string } | { readonly id: number; readonly error: string }

interface Reading {
  readonly fd: number
  readonly hash: Hash
  readonly size: number
  at: number
}

/** Hashes files as far as their bytes are reported to exist. Reading blocks, so larger downloads run it in a thread. */
export const makeHashReader = (onResult: (result: HashResult) => void): ((message: HashMessage) => void) => {
  const buffer = new Uint8Array(256 * 1024)
  const readings = new Map<number, Reading>()

  const finish = (id: number, reading: Reading) => {
    readings.delete(id)
    closeSync(reading.fd)
  }

  /** Recently written bytes are still in the page cache, so reading them is cheap. */
  const readTo = (id: number, reading: Reading, to: number) => {
    while (reading.at < to) {
      const bytes = readSync(reading.fd, buffer, 0, Math.min(buffer.length, to - reading.at), reading.at)
      if (bytes === 0) throw new Error("a file became shorter while it was hashed")
      reading.hash.update(buffer.subarray(0, bytes))
      reading.at += bytes
    }
    if (reading.at < reading.size) return
    finish(id, reading)
    onResult({ id, digest: reading.hash.digest("hex") })
  }

  return (message) => {
    const { id } = message
    try {
      if (message.kind === "open") {
        const reading = { fd: openSync(message.path, "r"), hash: createHash(message.algorithm).update(message.prefix), size: message.size, at: 0 }
        readings.set(id, reading)
        return readTo(id, reading, 0)
      }
      const reading = readings.get(id)
      if (reading === undefined) return
      if (message.kind === "advance") readTo(id, reading, message.to)
      else finish(id, reading)
    } catch (error) {
      const reading = readings.get(id)
      if (reading !== undefined) finish(id, reading)
      onResult({ id, error: String(error) })
    }
  }
}
