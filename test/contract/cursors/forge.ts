import type { Draw } from "../pages/Draw.ts"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
const strange = ["=", "+", "/", ".", " ", "%", "\0", "\n", "é", "А", "😀", "&", "'", '"', "\\", "~"] as const

const bytesOf = (cursor: string) => Buffer.from(cursor, "base64url")
const letters = (draw: Draw, count: number) => Array.from({ length: count }, () => alphabet.charAt(draw.below(64))).join("")
const replaced = (text: string, at: number, by: string, length = 1) => text.slice(0, at) + by + text.slice(at + length)

type Forgery = (draw: Draw, cursor: string, other: string) => string

/** Changes some bytes in `start..end` (exclusive). Negative positions count from the end. */
const changedBytes =
  (start: number, end?: number): Forgery =>
  (draw, cursor) => {
    const bytes = bytesOf(cursor)
    const part = bytes.subarray(start, end)
    for (let count = 0; count <= draw.below(4); count++) part[draw.below(part.length)] = draw.below(256)
    return bytes.toString("base64url")
  }

/** Ways to forge a cursor. `other`: a genuine cursor of another list. Some of them occasionally return the cursor unchanged. */
const forgeries: readonly [Forgery, ...Array<Forgery>] = [
  // One bit, a few bytes, or a field: version, time, list, id, signature.
  (draw, cursor) => {
    const bytes = bytesOf(cursor)
    const at = draw.below(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << draw.below(8))
    return bytes.toString("base64url")
  },
  changedBytes(0),
  changedBytes(0, 1),
  changedBytes(1, 7),
  changedBytes(7, 19),
  changedBytes(19, -16),
  changedBytes(-16),
  // Characters.
  (draw, cursor) => replaced(cursor, draw.below(cursor.length), letters(draw, 1)),
  (draw, cursor) => replaced(cursor, draw.below(cursor.length), draw.of(strange)),
  (draw, cursor) => replaced(cursor, draw.below(cursor.length + 1), draw.of([letters(draw, 1), draw.of(strange)]), 0),
  (draw, cursor) => replaced(cursor, draw.below(cursor.length), ""),
  // Unused bits of the last character.
  (draw, cursor) => replaced(cursor, cursor.length - 1, letters(draw, 1)),
  (draw, cursor) => {
    const at = draw.below(cursor.length - 1)
    return replaced(cursor, at, cursor.charAt(at + 1) + cursor.charAt(at), 2)
  },
  (_, cursor) => cursor.toLowerCase(),
  (_, cursor) => cursor.toUpperCase(),
  (_, cursor) => bytesOf(cursor).toString("base64"),
  (_, cursor) => bytesOf(cursor).toString("hex"),
  // Truncated, extended or concatenated.
  (draw, cursor) => cursor.slice(0, 1 + draw.below(cursor.length - 1)),
  (draw, cursor) => cursor.slice(1 + draw.below(cursor.length - 1)),
  (draw, cursor) => cursor + letters(draw, 1 + draw.below(120)),
  (draw, cursor) => letters(draw, 1 + draw.below(120)) + cursor,
  (draw, cursor) => cursor + draw.of(strange).repeat(1 + draw.below(3)),
  (draw, cursor) => draw.of(strange) + cursor,
  (_, cursor) => cursor + cursor,
  (draw, cursor, other) => {
    const at = draw.below(cursor.length + 1)
    return cursor.slice(0, at) + other.slice(at)
  },
  (draw, cursor, other) => {
    const at = 1 + draw.below(50)
    return Buffer.concat([bytesOf(cursor).subarray(0, at), bytesOf(other).subarray(at)]).toString("base64url")
  },
  // With the signature of another cursor, or without one.
  (_, cursor, other) => Buffer.concat([bytesOf(cursor).subarray(0, -16), bytesOf(other).subarray(-16)]).toString("base64url"),
  (_, cursor) => Buffer.concat([bytesOf(cursor).subarray(0, -16), Buffer.alloc(16)]).toString("base64url"),
  (_, cursor) => bytesOf(cursor).subarray(0, -16).toString("base64url"),
  // Unrelated text.
  (draw, cursor) => letters(draw, cursor.length),
  (draw) => letters(draw, 1 + draw.below(256)),
  (draw) => draw.of(["null", "undefined", "0", "-1", "eyJhIjoxfQ", "../", "{}", "a", "=", "%00"])
]

/** Number of kinds of forgeries. */
export const kinds = forgeries.length

/** Forges a cursor with the given kind of forgery. The result always differs from the cursor. */
export const forge = (draw: Draw, kind: number, cursor: string, other: string): string => {
  const forgery = forgeries[kind % forgeries.length] ?? forgeries[0]
  const forged = forgery(draw, cursor, other)
  return forged === cursor || forged === other ? `${forged}A` : forged
}
