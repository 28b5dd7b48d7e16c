import { Result, Struct } from "effect"
import { Unreadable } from "./failures.ts"
import { JsonNumber, JsonScanner } from "./JsonScanner.ts"
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
  if (length < 2n || length + 8n > BigInt(size)) return Result.fail(new Unreadable({ reason: `${file} states a header that does not lie within the file.` }))
  if (length > BigInt(maxHeaderBytes)) return Result.fail(new Unreadable({ reason: `${file} states a header of more than ${maxHeaderBytes} bytes.` }))
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
    return end === dataBytes ? null : "is not as long as its tensors"
  }
}

/** The members of a tensor, each as a bit in the set of those that were read. */
const members = { dtype: 1, shape: 2, data_offsets: 4 } as const
type Member = keyof typeof members
const isMember = (name: string): name is Member => name === "dtype" || name === "shape" || name === "data_offsets"

/**
 * Reads a safetensors header as it arrives. The tensors must be contiguous from the end of the header to the end of the
 * file, each with the length of its shape and type. `dataBytes` is the number of bytes after the header.
 */
export const scanHeader = (dataBytes: number, file: string): Sink<Header> => {
  const groups = new TensorGroups()
  const names = new NameHashes()
  const places = new Places()
  const fail = (what: string): never => {
    throw new Unreadable({ reason: `${file} ${what}.` })
  }

  let inMetadata = false
  let hasMetadata = false
  let notes = 0
  const tensor = new TensorName()
  let member: Member | null = null
  let memberBits = 0
  let dtype = ""
  let shape: Array<number> = []
  let offsets: Array<number> = []

  const describe = (): never => fail(`describes the tensor ${tensor.text.slice(0, 80)} in a way that no engine takes`)

  const endTensor = () => {
    const bits = bitsOf.get(dtype)
    const [from, to] = offsets
    if (bits === undefined || (memberBits & members.shape) === 0 || from === undefined || to === undefined || offsets.length !== 2) return describe()
    const elements = shape.includes(0) ? 0 : shape.reduce((product, side) => product * side, 1)
    // Beyond 2^53 the product is rounded, and larger than any file.
    if (to < from || to > dataBytes || elements * bits !== (to - from) * 8)
      return fail(`gives the tensor ${tensor.text.slice(0, 80)} another length than its shape`)
    if (names.length === maxTensors) return fail(`has more than ${maxTensors} tensors`)
    names.add(tensor)
    places.add(from, to)
    groups.add(tensor, dtype, shape, to - from)
    if (groups.full) return fail("has more kinds of tensors than any model")
  }

  const scanner = new JsonScanner(`The header of ${file}`, {
    ignores: (depth) => depth >= 2 && (inMetadata || (depth > 2 && member === null)),
    begin: (kind, depth) => {
      if (depth === 0 && kind === "list") fail("has a header that is not a JSON object")
      if (depth === 1) {
        if (kind === "list") return inMetadata ? fail("has malformed metadata") : describe()
        memberBits = 0
        dtype = ""
        shape = []
        offsets = []
      }
      if (depth === 2) {
        if (inMetadata) return fail("has malformed metadata")
        if (member !== null && (kind !== "list" || member === "dtype")) return describe()
      }
      if (depth >= 3 && member !== null) return describe()
    },
    end: (depth) => {
      if (depth === 2) member = null
      if (depth === 1) {
        if (inMetadata) inMetadata = false
        else endTensor()
      }
    },
    name: (name, depth) => {
      if (depth === 1) {
        inMetadata = name === "__metadata__"
        if (inMetadata) {
          if (hasMetadata) return fail("names something twice")
          hasMetadata = true
        } else if (!tensor.read(name)) return fail("names a tensor in characters that no engine takes")
      }
      if (depth === 2 && !inMetadata) {
        member = isMember(name) ? name : null
        if (member === null) return
        if ((memberBits & members[member]) !== 0) return fail("names something twice")
        memberBits |= members[member]
      }
    },
    value: (value, depth) => {
      if (depth === 0) return fail("has a header that is not a JSON object")
      if (depth === 1) return inMetadata ? fail("has malformed metadata") : describe()
      if (inMetadata) {
        if (typeof value !== "string" || ++notes > maxNotes) return fail("has malformed metadata")
        return
      }
      if (member === null) return
      if (depth === 2) {
        if (member !== "dtype" || typeof value !== "string") return describe()
        dtype = value
        member = null
        return
      }
      if (!(value instanceof JsonNumber) || !value.isInteger) return describe()
      const into = member === "shape" ? shape : offsets
      if (into.length === (member === "shape" ? maxSides : 2)) return describe()
      into.push(value.value)
    }
  })

  return {
    push: (chunk) => scanner.push(chunk),
    end: () => {
      scanner.end()
      const problem = places.problem(dataBytes)
      if (problem !== null) fail(problem)
      return { groups, names }
    }
  }
}
