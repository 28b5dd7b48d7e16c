import { Result, Struct } from "effect"
import { Unreadable } from "./failures.ts"
import { JsonNumber, JsonScanner, type JsonVisitor } from "./JsonScanner.ts"
import { TensorGroups } from "./TensorGroups.ts"
import { maxTensors, NameHashes, TensorName } from "./TensorNames.ts"

/** Maximum header length in bytes. The largest real ones are below 2 MB. */
export const maxHeaderBytes = 16 * 1024 * 1024

/** Bits per element. */
const elementBits = {
  F64: 64,
  I64: 64,
  U64: 64,
  C64: 64,
  F32: 32,
  I32: 32,
  U32: 32,
  F16: 16,
  BF16: 16,
  I16: 16,
  U16: 16,
  F8_E4M3: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2: 8,
  F8_E5M2FNUZ: 8,
  F8_E8M0: 8,
  I8: 8,
  U8: 8,
  BOOL: 8,
  F6_E3M2: 6,
  F6_E2M3: 6,
  F4: 4
} as const

export type TensorType = keyof typeof elementBits
export const tensorTypes = Struct.keys(elementBits)

const bitsOf: ReadonlyMap<string, number> = new Map(tensorTypes.map((dtype) => [dtype, elementBits[dtype]]))
const maxSides = 16
/** Maximum number of metadata entries in a header. */
const maxNotes = 100_000

/**
 * Length of the JSON header after a safetensors file's first eight bytes. Fails if it is impossible for a file of
 * `size` bytes; `file` is for the message.
 */
export const headerLength = (first: Uint8Array, size: number, file: string): Result.Result<number, Unreadable> => {
  if (first.length < 8 || size < 10) return Result.fail(new Unreadable({ reason: `${file} is too short to be a safetensors file.` }))
  const length = new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true)
  if (length < 2n || length + 8n > BigInt(size)) return Result.fail(new Unreadable({ reason: `${file} has an invalid header length.` }))
  if (length > BigInt(maxHeaderBytes)) return Result.fail(new Unreadable({ reason: `${file} has a header of more than ${maxHeaderBytes} bytes.` }))
  return Result.succeed(Number(length))
}

/** The content of a header. */
export interface Header {
  readonly groups: TensorGroups
  readonly names: NameHashes
}

/** Consumes bytes as they arrive and returns a result at the end. Both methods throw `Unreadable`. */
export interface Sink<A> {
  readonly push: (chunk: Uint8Array) => void
  readonly end: () => A
}

/** The ranges of tensors in a file, which must be contiguous without gaps or overlaps. */
class Places {
  #from = new Float64Array(64)
  #to = new Float64Array(64)
  #count = 0
  #ordered = true

  add(from: number, to: number): void {
    if (this.#count === this.#from.length) {
      this.#from = new Float64Array(this.#from.buffer.transfer(this.#count * 16))
      this.#to = new Float64Array(this.#to.buffer.transfer(this.#count * 16))
    }
    if (from !== (this.#count === 0 ? 0 : this.#to[this.#count - 1])) this.#ordered = false
    this.#from[this.#count] = from
    this.#to[this.#count++] = to
  }

  /** The problem of the ranges in a file with this many bytes of data, or null. */
  problem(dataBytes: number): string | null {
    const order = new Uint32Array(this.#count)
    for (let at = 0; at < order.length; at++) order[at] = at
    const from = (at: number) => this.#from[at] ?? 0
    const to = (at: number) => this.#to[at] ?? 0
    if (!this.#ordered) order.sort((a, b) => from(a) - from(b) || to(a) - to(b))
    let end = 0
    for (const at of order) {
      if (from(at) !== end) return from(at) < end ? "has tensors that overlap" : "has gaps between its tensors"
      end = to(at)
    }
    return end === dataBytes ? null : "has more data than its tensors need"
  }
}

/** The members of a tensor, each as a bit in the set of those that were read. */
const members = { dtype: 1, shape: 2, data_offsets: 4 } as const
type Member = keyof typeof members
const isMember = (name: string): name is Member => name === "dtype" || name === "shape" || name === "data_offsets"

/** The description of one tensor in a header. */
class TensorEntry {
  dtype = ""
  shape: Array<number> = []
  offsets: Array<number> = []
  /** The member that is being read; null if there is none, or if it is ignored. */
  member: Member | null = null
  #read = 0

  reset(): void {
    this.dtype = ""
    this.shape = []
    this.offsets = []
    this.#read = 0
  }

  /** Begins a member. False if the entry has it already. */
  begin(name: string): boolean {
    this.member = isMember(name) ? name : null
    if (this.member === null) return true
    if ((this.#read & members[this.member]) !== 0) return false
    this.#read |= members[this.member]
    return true
  }

  /** Adds a value of the current member. False if the member cannot have it. */
  take(value: string | boolean | null | JsonNumber, isWhole: boolean): boolean {
    if (isWhole) {
      if (this.member !== "dtype" || typeof value !== "string") return false
      this.dtype = value
      this.member = null
      return true
    }
    if (!(value instanceof JsonNumber) || !value.isInteger) return false
    const into = this.member === "shape" ? this.shape : this.offsets
    if (into.length === (this.member === "shape" ? maxSides : 2)) return false
    into.push(value.value)
    return true
  }

  /** Whether it has a known type, a shape and a range. */
  get isComplete(): boolean {
    return bitsOf.has(this.dtype) && (this.#read & members.shape) !== 0 && this.offsets.length === 2
  }

  /** Bits of all elements. Beyond 2^53 the product is rounded, and larger than any file. */
  get bits(): number {
    const elements = this.shape.includes(0) ? 0 : this.shape.reduce((product, side) => product * side, 1)
    return elements * (bitsOf.get(this.dtype) ?? 0)
  }
}

/** Collects the tensors of a header. `dataBytes` is the number of bytes after the header. */
class HeaderVisitor implements JsonVisitor {
  readonly groups = new TensorGroups()
  readonly names = new NameHashes()
  readonly places = new Places()
  readonly #dataBytes: number
  readonly #fail: (what: string) => never
  #inMetadata = false
  #hasMetadata = false
  #notes = 0
  readonly #tensor = new TensorName()
  readonly #entry = new TensorEntry()

  constructor(dataBytes: number, fail: (what: string) => never) {
    this.#dataBytes = dataBytes
    this.#fail = fail
  }

  ignores(depth: number): boolean {
    return depth >= 2 && (this.#inMetadata || (depth > 2 && this.#entry.member === null))
  }

  begin(kind: "object" | "list", depth: number): void {
    if (depth === 0 && kind === "list") this.#fail("has a header that is not a JSON object")
    if (depth === 1) {
      if (kind === "list") this.#malformed()
      this.#entry.reset()
    } else if (depth >= 2) this.#beginWithin(kind, depth)
  }

  /** Only the lists of a shape and of offsets may begin in a tensor's entry, and nothing in the metadata. */
  #beginWithin(kind: "object" | "list", depth: number): void {
    if (this.#inMetadata) this.#malformed()
    const { member } = this.#entry
    if (member !== null && (depth > 2 || kind !== "list" || member === "dtype")) this.#malformed()
  }

  end(depth: number): void {
    if (depth === 2) this.#entry.member = null
    if (depth !== 1) return
    if (this.#inMetadata) this.#inMetadata = false
    else this.#endTensor()
  }

  name(name: string, depth: number): void {
    if (depth === 1) this.#nameEntry(name)
    else if (depth === 2 && !this.#inMetadata && !this.#entry.begin(name)) this.#fail("has a duplicate member")
  }

  #nameEntry(name: string): void {
    this.#inMetadata = name === "__metadata__"
    if (!this.#inMetadata) {
      if (!this.#tensor.read(name)) this.#fail("names a tensor in characters that no engine accepts")
      return
    }
    if (this.#hasMetadata) this.#fail("has a duplicate member")
    this.#hasMetadata = true
  }

  value(value: string | boolean | null | JsonNumber, depth: number): void {
    if (depth === 0) this.#fail("has a header that is not a JSON object")
    if (depth === 1) this.#malformed()
    if (this.#inMetadata) {
      if (typeof value !== "string" || ++this.#notes > maxNotes) this.#malformed()
    } else if (this.#entry.member !== null && !this.#entry.take(value, depth === 2)) this.#malformed()
  }

  #malformed(): never {
    return this.#fail(this.#inMetadata ? "has malformed metadata" : `has an invalid description of the tensor ${this.#tensor.text.slice(0, 80)}`)
  }

  #endTensor(): void {
    if (!this.#entry.isComplete) this.#malformed()
    const [from = 0, to = 0] = this.#entry.offsets
    const tensor = this.#tensor.text.slice(0, 80)
    if (to < from || this.#entry.bits !== (to - from) * 8) this.#fail(`has data offsets for the tensor ${tensor} that do not match its type and shape`)
    if (to > this.#dataBytes) this.#fail(`ends before the end of the tensor ${tensor}`)
    if (this.names.length === maxTensors) this.#fail(`has more than ${maxTensors} tensors`)
    this.names.add(this.#tensor)
    this.places.add(from, to)
    this.groups.add(this.#tensor, this.#entry.dtype, this.#entry.shape, to - from)
    if (this.groups.full) this.#fail("has more kinds of tensors than any model")
  }
}

/**
 * Reads a safetensors header as it arrives. The tensors must be contiguous from the end of the header to the end of the
 * file, each with the length of its shape and type. `dataBytes` is the number of bytes after the header.
 */
export const scanHeader = (dataBytes: number, file: string): Sink<Header> => {
  const fail = (what: string): never => {
    throw new Unreadable({ reason: `${file} ${what}.` })
  }
  const visitor = new HeaderVisitor(dataBytes, fail)
  const scanner = new JsonScanner(`The header of ${file}`, visitor)
  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      const { groups, names, places } = visitor
      const problem = places.problem(dataBytes)
      if (problem !== null) fail(problem)
      return { groups, names }
    }
  }
}
