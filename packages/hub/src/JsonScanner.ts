import { Unreadable } from "./failures.ts"

/** The events of a scanner. `depth` is the number of enclosing objects and lists. */
export interface JsonVisitor {
  readonly begin: (kind: "object" | "list", depth: number) => void
  readonly end: (depth: number) => void
  readonly name: (name: string, depth: number) => void
  readonly value: (value: string | boolean | null | JsonNumber, depth: number) => void
  /** Whether values at that depth are ignored. Ignored strings and numbers are reported empty, which costs nothing. */
  readonly ignores: (depth: number) => boolean
}

export class JsonNumber {
  readonly value: number
  /** Whether it is written with digits only, and few enough to be exact. */
  readonly isInteger: boolean
  constructor(value: number, isInteger: boolean) {
    this.value = value
    this.isInteger = isInteger
  }
}

const ignored = new JsonNumber(0, false)

/** Maximum nesting, beyond the files of any real model. */
export const maxDepth = 64
/** Maximum length of a string or number in bytes. Some trainers store their whole log in a header's metadata. */
const maxToken = 4 * 1024 * 1024
/** Maximum number of values, objects and lists, beyond any real header. */
const maxValues = 5_000_000
/** Maximum length of a number in digits. */
const maxWord = 1_000
/** Number of digits up to which any number is exact: 2^53 has 16. */
const exactDigits = 15

/** Strings up to this length are deduplicated, because member and file names repeat many times. */
const longestKnown = 40

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const numberForm = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const literals: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["null", null]
])

/** ASCII bytes that represent themselves in a string: all except quotes, escapes and control characters. */
const ordinary = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= 0x20 && byte < 0x80 && byte !== 0x22 && byte !== 0x5c ? 1 : 0))
/** Letters, digits, signs and the decimal point: bytes of numbers and literals. */
const ofWords = Uint8Array.from({ length: 256 }, (_, byte) => (/[0-9a-zE.+-]/.test(String.fromCharCode(byte)) ? 1 : 0))

/** JSON's white space: space, line feed, carriage return and tab. */
const spaces = Uint8Array.from({ length: 256 }, (_, byte) => (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09 ? 1 : 0))

const object = 1
const list = 2

type Expected = "value" | "valueOrEnd" | "name" | "nameOrEnd" | "colon" | "commaOrEnd" | "nothing"

/**
 * Reads JSON (RFC 8259) in pieces of any size and emits events without building values. Its memory is the longest
 * string. `push` and `end` throw `Unreadable` if the input is invalid, or deeper or longer than real files; `of` names
 * the input in the message.
 */
export class JsonScanner {
  readonly #visitor: JsonVisitor
  readonly #of: string
  readonly #open = new Uint8Array(maxDepth)
  #depth = 0
  #values = 0
  #expected: Expected = "value"
  #mode: "none" | "text" | "word" = "none"
  #escaped = false
  #plain = true
  #token = Buffer.allocUnsafeSlow(1024)
  readonly #known: Array<string> = Array.from({ length: 61 }, () => "")
  #length = 0

  constructor(of: string, visitor: JsonVisitor) {
    this.#of = of
    this.#visitor = visitor
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    let at = 0
    while (at < bytes.length) at = this.#mode === "text" ? this.#text(bytes, at) : this.#step(bytes, at)
  }

  end(): void {
    if (this.#mode === "word") this.#word()
    if (this.#mode !== "none" || this.#expected !== "nothing") this.#invalid()
  }

  #invalid(): never {
    throw new Unreadable({ reason: `${this.#of} is not valid JSON.` })
  }

  #keep(bytes: Uint8Array): void {
    const length = this.#length + bytes.length
    if (length > maxToken) throw new Unreadable({ reason: `${this.#of} has a text of more than ${maxToken} bytes.` })
    if (length > this.#token.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(maxToken, Math.max(length, this.#token.length * 2)))
      grown.set(this.#token.subarray(0, this.#length))
      this.#token = grown
    }
    this.#token.set(bytes, this.#length)
    this.#length = length
  }

  /** The first byte after an escaped character that began in the chunk before. */
  #afterEscape(chunk: Buffer, from: number): number {
    if (!this.#escaped || from >= chunk.length) return from
    this.#escaped = false
    if ((chunk[from] ?? 0) < 0x20) this.#invalid()
    return from + 1
  }

  /** The position of the closing quote, or at least the chunk's length if the string does not end in it. */
  #closingQuote(chunk: Buffer, from: number): number {
    let at = this.#afterEscape(chunk, from)
    for (; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (ordinary[byte] === 1) continue
      if (byte === 0x22) break
      if (byte < 0x20) this.#invalid()
      this.#plain = false
      // The escaped character may come with the next chunk.
      if (byte !== 0x5c) continue
      if (++at === chunk.length) this.#escaped = true
      else if ((chunk[at] ?? 0) < 0x20) this.#invalid()
    }
    return at
  }

  /** Reads within a string up to its end or the end of the chunk. */
  #text(chunk: Buffer, from: number): number {
    const at = this.#closingQuote(chunk, from)
    const to = Math.min(at, chunk.length)
    if (at >= chunk.length) {
      this.#keep(chunk.subarray(from, to))
      return to
    }
    // A string within a single chunk, the common case, is read without copying.
    if (this.#plain && this.#length === 0 && to - from <= maxToken) this.#endText(this.#visitor.ignores(this.#depth) ? "" : this.#read(chunk, from, to))
    else {
      this.#keep(chunk.subarray(from, to))
      this.#endText(this.#decoded())
    }
    return to + 1
  }

  #endText(text: string): void {
    this.#mode = "none"
    this.#length = 0
    if (this.#expected === "name" || this.#expected === "nameOrEnd") {
      this.#expected = "colon"
      this.#visitor.name(text, this.#depth)
    } else this.#value(text)
  }

  /** The text of these ASCII bytes. */
  #read(chunk: Buffer, from: number, to: number): string {
    const length = to - from
    if (length === 0) return ""
    if (length > longestKnown) return chunk.toString("latin1", from, to)
    const place = (length * 31 + (chunk[from] ?? 0) * 7 + (chunk[to - 1] ?? 0)) % this.#known.length
    const known = this.#known[place] ?? ""
    let same = known.length === length
    for (let at = 0; same && at < length; at++) same = known.charCodeAt(at) === chunk[from + at]
    if (same) return known
    const text = chunk.toString("latin1", from, to)
    this.#known[place] = text
    return text
  }

  #decoded(): string {
    if (this.#plain && this.#visitor.ignores(this.#depth)) return ""
    if (this.#plain) return this.#token.toString("latin1", 0, this.#length)
    try {
      const value: unknown = JSON.parse(`"${decoder.decode(this.#token.subarray(0, this.#length))}"`)
      return typeof value === "string" ? value : this.#invalid()
    } catch {
      return this.#invalid()
    }
  }

  /** The number of a short word of digits; null for any other word and for a leading zero. */
  #digits(): JsonNumber | null {
    if (this.#length > exactDigits || (this.#token[0] === 0x30 && this.#length > 1)) return null
    let value = 0
    for (let at = 0; at < this.#length; at++) {
      const byte = this.#token[at] ?? 0
      if (byte < 0x30 || byte > 0x39) return null
      value = value * 10 + byte - 0x30
    }
    return this.#visitor.ignores(this.#depth) ? ignored : new JsonNumber(value, true)
  }

  #word(): void {
    const digits = this.#digits()
    const text = digits === null ? this.#token.toString("latin1", 0, this.#length) : ""
    this.#mode = "none"
    this.#length = 0
    const literal = literals.get(text)
    if (digits !== null) this.#value(digits)
    else if (literal !== undefined) this.#value(literal)
    else if (numberForm.test(text)) this.#value(new JsonNumber(Number(text), false))
    else this.#invalid()
  }

  #count(): void {
    if (++this.#values > maxValues) throw new Unreadable({ reason: `${this.#of} holds more than ${maxValues} values.` })
  }

  #value(value: string | boolean | null | JsonNumber): void {
    this.#count()
    if (this.#expected !== "value" && this.#expected !== "valueOrEnd") this.#invalid()
    this.#expected = this.#depth === 0 ? "nothing" : "commaOrEnd"
    this.#visitor.value(value, this.#depth)
  }

  #begin(kind: number): void {
    this.#count()
    if (this.#expected !== "value" && this.#expected !== "valueOrEnd") this.#invalid()
    if (this.#depth === maxDepth) throw new Unreadable({ reason: `${this.#of} is nested deeper than ${maxDepth} levels.` })
    this.#visitor.begin(kind === object ? "object" : "list", this.#depth)
    this.#open[this.#depth++] = kind
    this.#expected = kind === object ? "nameOrEnd" : "valueOrEnd"
  }

  #close(kind: number): void {
    const endable = this.#expected === "commaOrEnd" || this.#expected === (kind === object ? "nameOrEnd" : "valueOrEnd")
    if (!endable || this.#depth === 0 || this.#open[this.#depth - 1] !== kind) this.#invalid()
    this.#depth--
    this.#expected = this.#depth === 0 ? "nothing" : "commaOrEnd"
    this.#visitor.end(this.#depth)
  }

  /** Reads the part of a word in this chunk. */
  #letters(chunk: Buffer, from: number): number {
    this.#mode = "word"
    let at = from
    for (; at < chunk.length && ofWords[chunk[at] ?? 0] === 1; at++) {
      if (this.#length === maxWord) this.#invalid()
      this.#token[this.#length++] = chunk[at] ?? 0
    }
    return at
  }

  #beginText(): void {
    if (this.#expected === "colon" || this.#expected === "commaOrEnd" || this.#expected === "nothing") this.#invalid()
    this.#mode = "text"
    this.#plain = true
  }

  #punctuation(byte: number): void {
    if (byte === 0x7b) this.#begin(object)
    else if (byte === 0x5b) this.#begin(list)
    else if (byte === 0x7d) this.#close(object)
    else if (byte === 0x5d) this.#close(list)
    else if (byte === 0x3a && this.#expected === "colon") this.#expected = "value"
    else if (byte === 0x2c && this.#expected === "commaOrEnd") this.#expected = this.#open[this.#depth - 1] === object ? "name" : "value"
    else this.#invalid()
  }

  /** Reads outside of a string: one byte, or the part of a word in this chunk. */
  #step(chunk: Buffer, from: number): number {
    const byte = chunk[from] ?? 0
    if (ofWords[byte] === 1) return this.#letters(chunk, from)
    if (this.#mode === "word") this.#word()
    if (byte === 0x22) this.#beginText()
    else if (spaces[byte] !== 1) this.#punctuation(byte)
    return from + 1
  }
}
