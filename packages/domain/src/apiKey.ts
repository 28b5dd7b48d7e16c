const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1
  return value >>> 0
})

/** CRC-32 (ISO-HDLC, as in zlib) of ASCII text. */
const crc32 = (text: string): number => {
  let value = 0xffffffff
  for (let index = 0; index < text.length; index++) value = (crcTable[(value ^ text.charCodeAt(index)) & 0xff] ?? 0) ^ (value >>> 8)
  return (value ^ 0xffffffff) >>> 0
}

const checksum = (body: string): string => {
  let value = crc32(body)
  let text = ""
  for (let index = 0; index < 6; index++) {
    text = base62.charAt(value % 62) + text
    value = Math.floor(value / 62)
  }
  return text
}

/** An API key from random bytes (at least 64): `seatrial_`, 30 base62 characters, and their CRC-32 in 6 more. */
export const makeApiKey = (random: Uint8Array): string => {
  let body = ""
  // Skip bytes of 248 and above, so that each character is equally likely.
  for (const byte of random) if (byte < 248 && body.length < 30) body += base62.charAt(byte % 62)
  if (body.length < 30) throw new RangeError("not enough random bytes for an API key")
  return `seatrial_${body}${checksum(body)}`
}

/** Whether the text has the form and the checksum of an API key. This detects typing errors without a query. */
export const isApiKey = (text: string): boolean => /^seatrial_[0-9A-Za-z]{36}$/.test(text) && checksum(text.slice(9, 39)) === text.slice(39)
