import { invalidBody, type Refusal } from "../refusals.ts"

/**
 * Limits of a JSON text, not counting the contents of strings. Beyond them, parsing would take far more memory and time
 * than sending.
 */
export const jsonLimits = {
  depth: 64,
  /** Objects and arrays. */
  containers: 100_000,
  /** Members of objects and elements of arrays, which includes every scalar. */
  parts: 1_000_000,
  /** Members of objects. Each may have a name that no other object has. */
  members: 250_000,
  /** Integers that a double cannot represent exactly. */
  longIntegers: 10_000,
  /** Characters of one number. */
  numberLength: 1_024
} as const

const tooMany = (limit: number, parts: string) => invalidBody(`The body may have at most ${limit} ${parts}.`)
const tooDeep = invalidBody(`The body may be nested at most ${jsonLimits.depth} levels deep.`)
const numberTooLarge = invalidBody("The body has a number that is too large.")
const numberTooLong = invalidBody(`The body has a number of more than ${jsonLimits.numberLength} characters.`)

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const minus = 0x2d
const zero = 0x30
const nine = 0x39

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

const endOfString = (bytes: Uint8Array, start: number): number => {
  let at = start
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === backslash) at++
    else if (byte === quote) break
  }
  return at
}

/** A number outside of strings. */
interface NumberToken {
  end: number
  isInteger: boolean
  /** 0 if there is none, or if it is negative. */
  exponent: number
}

/** Reads the number at `start` into `token`. The object is reused, because a body may have a million numbers. */
const readNumber = (bytes: Uint8Array, start: number, token: NumberToken) => {
  token.isInteger = true
  token.exponent = 0
  let hasExponent = false
  let at = start
  for (; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    if (byte >= zero && byte <= nine) {
      if (hasExponent) token.exponent = token.exponent * 10 + byte - zero
    } else if (byte === 0x65 || byte === 0x45) {
      hasExponent = true
      token.isInteger = false
    } else if (byte === minus && hasExponent) hasExponent = false
    else if (byte === 0x2e) token.isInteger = false
    else if (byte !== 0x2b && byte !== minus) break
  }
  token.end = at
}

/** Whether a colon follows. A number cannot be a member name; the parser refuses it. */
const isName = (bytes: Uint8Array, end: number) => {
  let at = end
  while (isSpace(bytes[at])) at++
  return bytes[at] === colon
}

/** Digits of the shortest integer that a double may not represent. */
const inexactLength = 16
/** Digits of the longest number that is always finite. */
const finiteDigits = 307

/**
 * Whether an integer is not exact as a double. Malformed numbers, such as those with a leading 0, are left to the
 * parser.
 */
const isLongInteger = (token: string) => /^-?[1-9]\d*$/.test(token) && !Number.isSafeInteger(Number(token))

const isFinite = (token: string) => {
  const value = Number(token)
  return value !== Number.POSITIVE_INFINITY && value !== Number.NEGATIVE_INFINITY
}

/**
 * Counts the parts of a JSON text byte by byte, without allocating, before it is parsed. Returns the start and end
 * positions of integers that a double cannot represent, or a refusal if a limit is exceeded. It does not check the
 * syntax; the parser does.
 */
export const scanJson = (bytes: Buffer): ReadonlyArray<number> | Refusal => {
  let depth = 0
  let containers = 0
  let commas = 0
  let members = 0
  const longIntegers: Array<number> = []
  const token: NumberToken = { end: 0, isInteger: false, exponent: 0 }
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) at = endOfString(bytes, at + 1)
    else if (byte === 0x7b || byte === 0x5b) {
      if (++containers > jsonLimits.containers) return tooMany(jsonLimits.containers, "objects and lists")
      if (++depth > jsonLimits.depth) return tooDeep
    } else if (byte === 0x7d || byte === 0x5d) depth--
    else if (byte === comma) {
      if (++commas > jsonLimits.parts) return tooMany(jsonLimits.parts, "members and elements")
    } else if (byte === colon) {
      if (++members > jsonLimits.members) return tooMany(jsonLimits.members, "members of objects")
    } else if (byte === minus || (byte !== undefined && byte >= zero && byte <= nine)) {
      readNumber(bytes, at, token)
      const { end } = token
      const length = end - at
      if (length > jsonLimits.numberLength) return numberTooLong
      if (length + token.exponent > finiteDigits && !isFinite(bytes.toString("latin1", at, end))) return numberTooLarge
      if (token.isInteger && length >= inexactLength && isLongInteger(bytes.toString("latin1", at, end)) && !isName(bytes, end)) {
        if (longIntegers.length / 2 >= jsonLimits.longIntegers) return tooMany(jsonLimits.longIntegers, "integers of more than 15 digits")
        longIntegers.push(at, end)
      }
      at = end - 1
    }
  }
  return longIntegers
}
