import { invalidBody, type Refusal } from "../refusals.ts"

/** What a JSON text may have, outside of its strings: what is beyond costs far more memory and time to parse than it costs to send. */
export const jsonLimits = {
  depth: 64,
  /** Objects and lists. */
  containers: 100_000,
  /** Members of objects and elements of lists: each scalar is one of them. */
  parts: 1_000_000,
  /** Members of objects alone: each may be a name that no other object has. */
  members: 250_000,
  /** Whole numbers that a double does not hold exactly. */
  longIntegers: 10_000,
  /** Characters of one number. */
  numberLength: 1_024
} as const

const tooMany = (limit: number, parts: string) => invalidBody(`The body may have at most ${limit} ${parts}.`)
const tooDeep = invalidBody(`The body may be nested ${jsonLimits.depth} deep at most.`)
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

/** A number outside of strings, as far as its bytes say. */
interface NumberToken {
  end: number
  isInteger: boolean
  /** 0 if there is none, or if it is negative. */
  exponent: number
}

/** Reads the token that begins at `start`, into an object that is used again: bodies may have a million. */
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

/** Whether the token is the name of a member, which no number may be: the parser refuses it. */
const isName = (bytes: Uint8Array, end: number) => {
  let at = end
  while (isSpace(bytes[at])) at++
  return bytes[at] === colon
}

/** Characters of the shortest integer that a double may not hold. */
const inexactLength = 16
/** A number below 1e308 is not too large. */
const finiteDigits = 307

/** Whether an integer keeps its digits only as text. What begins with 0, or has a sign in its midst, is no number: that is the parser's. */
const isLongInteger = (token: string) => /^-?[1-9]\d*$/.test(token) && !Number.isSafeInteger(Number(token))

const isFinite = (token: string) => {
  const value = Number(token)
  return value !== Number.POSITIVE_INFINITY && value !== Number.NEGATIVE_INFINITY
}

/**
 * Counts what a JSON text has, byte by byte and without any memory of its own, before it is parsed. Gives the beginnings and ends of the whole numbers that a double does not
 * hold exactly, or a refusal that says which limit the text is beyond. It does not check that the text is JSON: that is the parser's.
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
        if (longIntegers.length / 2 >= jsonLimits.longIntegers) return tooMany(jsonLimits.longIntegers, "whole numbers of more than 15 digits")
        longIntegers.push(at, end)
      }
      at = end - 1
    }
  }
  return longIntegers
}
