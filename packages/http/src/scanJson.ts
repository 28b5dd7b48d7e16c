/** Limits of the numbers in a JSON text. */
export interface NumberLimits {
  /** Characters of one number. */
  readonly numberLength: number
  /** Integers that a double cannot represent exactly. */
  readonly longIntegers: number
}

/**
 * Limits of a JSON text, not counting the contents of strings. Beyond them, parsing would take far more memory and time
 * than sending.
 */
export interface JsonLimits {
  readonly depth: number
  /** Objects and arrays. */
  readonly containers: number
  /** Members of objects and elements of arrays, which includes every scalar. */
  readonly parts: number
  /** Members of objects. Each may have a name that no other object has. */
  readonly members: number
  /** Null if any number may be parsed. */
  readonly numbers: NumberLimits | null
}

/** A limit that a JSON text exceeds. `message` is for the caller. */
export class JsonExcess {
  readonly limit: keyof JsonLimits
  readonly message: string

  constructor(limit: keyof JsonLimits, message: string) {
    this.limit = limit
    this.message = message
  }
}

const quote = 0x22
const backslash = 0x5c
const colonByte = 0x3a
const minus = 0x2d
const zero = 0x30
const nine = 0x39

/** The kinds of bytes outside of strings. */
const [other, string, opening, closing, comma, colon, number] = [0, 1, 2, 3, 4, 5, 6]

const tableOf = (entries: ReadonlyArray<readonly [bytes: string, value: number]>): Uint8Array => {
  const table = new Uint8Array(256)
  for (const [bytes, value] of entries) for (const byte of Buffer.from(bytes)) table[byte] = value
  return table
}

const kinds = tableOf([
  ['"', string],
  ["{[", opening],
  ["}]", closing],
  [",", comma],
  [":", colon],
  ["-0123456789", number]
])

const kindOf = (byte: number | undefined): number => kinds[byte ?? 0] ?? other

/** What a byte means inside a number; `other` ends it. */
const [digit, fraction, exponentMark] = [1, 2, 3]
const numberBytes = tableOf([
  ["+-0123456789", digit],
  [".", fraction],
  ["eE", exponentMark]
])

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

/** The exponent of a number; 0 if it is negative. */
const readExponent = (bytes: Uint8Array, start: number, end: number): number => {
  if (bytes[start] === minus) return 0
  let exponent = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0
    if (byte >= zero && byte <= nine) exponent = exponent * 10 + byte - zero
  }
  return exponent
}

/** Whether the number at `start` has one character, as most numbers of a list with very many elements. */
const isDigitOnly = (bytes: Uint8Array, start: number): boolean => numberBytes[bytes[start + 1] ?? 0] === other

/** Reads the number at `start` into `token`. The object is reused, because a body may have a million numbers. */
const readNumber = (bytes: Uint8Array, start: number, token: NumberToken): void => {
  let exponentAt = 0
  let isInteger = true
  let at = start
  for (; at < bytes.length; at++) {
    const meaning = numberBytes[bytes[at] ?? 0]
    if (meaning === digit) continue
    if (meaning === other) break
    isInteger = false
    if (meaning === exponentMark) exponentAt = at + 1
  }
  token.end = at
  token.isInteger = isInteger
  token.exponent = exponentAt === 0 ? 0 : readExponent(bytes, exponentAt, at)
}

/** Whether a colon follows. A number cannot be a member name; the parser refuses it. */
const isName = (bytes: Uint8Array, end: number) => {
  let at = end
  while (isSpace(bytes[at])) at++
  return bytes[at] === colonByte
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

const tooMany = (limit: keyof JsonLimits, max: number | undefined, parts: string) => new JsonExcess(limit, `The body may have at most ${max} ${parts}.`)
const numberTooLarge = new JsonExcess("numbers", "The body has a number that is too large.")

/** Counts the parts of one JSON text. */
class JsonTally {
  readonly #limits: JsonLimits
  #depth = 0
  #containers = 0
  #commas = 0
  #members = 0
  readonly #token: NumberToken = { end: 0, isInteger: false, exponent: 0 }
  /** The start and end of each integer that a double cannot represent. */
  readonly longIntegers: Array<number> = []

  constructor(limits: JsonLimits) {
    this.#limits = limits
  }

  /** The end of the last number. */
  get numberEnd(): number {
    return this.#token.end
  }

  /** Counts an opening, closing or separating byte. */
  count(kind: number): JsonExcess | null {
    if (kind === opening) return this.#open()
    if (kind === closing) this.#depth--
    else if (kind === comma && ++this.#commas > this.#limits.parts) return tooMany("parts", this.#limits.parts, "members and elements")
    else if (kind === colon && ++this.#members > this.#limits.members) return tooMany("members", this.#limits.members, "members of objects")
    return null
  }

  #open(): JsonExcess | null {
    const { containers, depth } = this.#limits
    if (++this.#containers > containers) return tooMany("containers", containers, "objects and lists")
    return ++this.#depth > depth ? new JsonExcess("depth", `The body may be nested at most ${depth} levels deep.`) : null
  }

  /** Counts the number at `start`. */
  countNumber(bytes: Buffer, start: number, limits: NumberLimits): JsonExcess | null {
    const token = this.#token
    readNumber(bytes, start, token)
    const isShort = token.end - start < inexactLength && token.exponent === 0
    return isShort ? null : this.#countLongNumber(bytes, start, limits)
  }

  #countLongNumber(bytes: Buffer, start: number, { longIntegers, numberLength }: NumberLimits): JsonExcess | null {
    const { end, exponent, isInteger } = this.#token
    const length = end - start
    if (length > numberLength) return new JsonExcess("numbers", `The body has a number of more than ${numberLength} characters.`)
    if (length + exponent > finiteDigits && !isFinite(bytes.toString("latin1", start, end))) return numberTooLarge
    if (!isInteger || !isLongInteger(bytes.toString("latin1", start, end)) || isName(bytes, end)) return null
    if (this.longIntegers.length / 2 >= longIntegers) return tooMany("numbers", longIntegers, "integers of more than 15 digits")
    this.longIntegers.push(start, end)
    return null
  }
}

/**
 * Counts the parts of a JSON text byte by byte, without allocating for each, before it is parsed. Returns the start and
 * end positions of integers that a double cannot represent, or the limit that the text exceeds. It does not check the
 * syntax; the parser does.
 */
export const scanJson = (bytes: Buffer, limits: JsonLimits): ReadonlyArray<number> | JsonExcess => {
  const tally = new JsonTally(limits)
  const { numbers } = limits
  for (let at = 0; at < bytes.length; at++) {
    const kind = kindOf(bytes[at])
    if (kind === other || (kind === number && (numbers === null || isDigitOnly(bytes, at)))) continue
    if (kind === string) {
      at = endOfString(bytes, at + 1)
      continue
    }
    const excess = kind === number && numbers !== null ? tally.countNumber(bytes, at, numbers) : tally.count(kind)
    if (excess !== null) return excess
    if (kind === number) at = tally.numberEnd - 1
  }
  return tally.longIntegers
}
