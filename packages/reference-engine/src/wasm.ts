/** The part of the global that is used here. The types of Node.js do not declare it. */
declare const WebAssembly: {
  readonly validate: (bytes: Uint8Array) => boolean
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new <Exports>(module: object) => { readonly exports: Exports }
}

/** Bytes of a WebAssembly page. */
export const page = 65_536

/** A memory of WebAssembly. `grow` adds pages and replaces `buffer`. */
export interface WasmMemory {
  readonly buffer: ArrayBuffer
  readonly grow: (pages: number) => number
}

type Bytes = ReadonlyArray<number>

/** Types of values. */
export const [i32, f64, v128] = [0x7f, 0x7c, 0x7b] as const
const prefix = 0xfd
const empty = 0x40
const end = 0x0b

const unsigned = (value: number): Bytes => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)])
const signed = (value: number): Bytes => {
  const low = value & 0x7f
  const rest = value >> 7
  return (rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40) ? [low] : [low | 0x80, ...signed(rest)]
}

// Instructions, https://webassembly.github.io/spec/core/binary/instructions.html. Operands are on the stack.
export const get = (local: number): Bytes => [0x20, local]
export const set = (local: number): Bytes => [0x21, local]
const constant = (value: number): Bytes => [0x41, ...signed(value)]
export const lowestFloat64: Bytes = [0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0xff]
export const increased = (local: number, by: Bytes | number): Bytes => [...get(local), ...(typeof by === "number" ? constant(by) : by), 0x6a, ...set(local)]
export const assigned = (local: number, value: number): Bytes => [...constant(value), ...set(local)]
/** Repeats the body at least once, and as long as it leaves another number than 0 on the stack. */
export const loop = (body: Bytes): Bytes => [0x03, empty, ...body, 0x0d, 0, end]
/** Decreases a counter and leaves it on the stack. */
export const counted = (local: number): Bytes => [...increased(local, -1), ...get(local)]
export const isBelow = (local: number, limit: number): Bytes => [...get(local), ...get(limit), 0x49]
export const storedFloat32: Bytes = [0xb6, 0x38, 2, 0]
export const storedFloat64: Bytes = [0x39, 3, 0]
export const [addedFloat64, multipliedFloat64, isGreater, selected] = [[0xa0], [0xa2], [0x64], [0x1b]] as const

// Instructions for vectors of 128 bits.
export const loaded = (offset = 0): Bytes => [prefix, 0x00, 3, offset]
export const stored = (offset = 0): Bytes => [prefix, 0x0b, 3, offset]
/** Loads a float64 into both lanes. */
export const loadedTwice: Bytes = [prefix, 0x0a, 3, 0]
/** Loads four bfloat16 values and widens them to float32 by moving them to the upper half. */
export const loadedBfloat16: Bytes = [prefix, 0x04, 3, 0, ...constant(16), prefix, 0xab, 1]
export const zeroed = (local: number): Bytes => [prefix, 0x0c, ...Array.from({ length: 16 }, () => 0), ...set(local)]
export const laneOf = (local: number, lane: 0 | 1): Bytes => [...get(local), prefix, 0x21, lane]
/** Converts the first two of four float32 values to float64. */
const promoted: Bytes = [prefix, 0x5f]
const upperHalf: Bytes = [prefix, 0x0d, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]
/** Two of the four float32 values of a local, as float64. */
export const firstTwo = (local: number): Bytes => [...get(local), ...promoted]
export const lastTwo = (local: number): Bytes => [...get(local), ...get(local), ...upperHalf, ...promoted]
/** `into += two · factor` for vectors of two float64. */
export const accumulated = (into: number, two: Bytes, factor: Bytes): Bytes => [
  ...get(into),
  ...two,
  ...factor,
  ...[prefix, 0xf2, 1],
  ...[prefix, 0xf0, 1],
  ...set(into)
]

/** A function. `locals`: groups of a count and a type. */
export interface WasmFunction {
  readonly name: string
  readonly parameters: Bytes
  readonly result: Bytes
  readonly locals: ReadonlyArray<readonly [count: number, type: number]>
  readonly body: Bytes
}

const sized = (content: Bytes): Bytes => [...unsigned(content.length), ...content]
const section = (id: number, items: ReadonlyArray<Bytes>): Bytes => [id, ...sized([items.length, ...items.flat()])]
const exportName = (name: string): Bytes => sized([...Buffer.from(name)])

/** The bytes of a module that exports `memory` and the functions. */
const moduleOf = (pages: number, functions: ReadonlyArray<WasmFunction>): Uint8Array =>
  Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(
      1,
      functions.map(({ parameters, result }) => [0x60, ...sized(parameters), ...sized(result)])
    ),
    ...section(
      3,
      functions.map((_, index) => [index])
    ),
    ...section(5, [[0, ...unsigned(pages)]]),
    ...section(7, [[...exportName("memory"), 2, 0], ...functions.map(({ name }, index) => [...exportName(name), 0, index])]),
    ...section(
      10,
      functions.map(({ body, locals }) => sized([locals.length, ...locals.flat(), ...body, end]))
    )
  ])

/**
 * Compiles functions with a memory of `pages`. Returns a function that makes an instance, or null if this machine does
 * not support them. `Exports` has the types of the memory and of the functions.
 */
export const compile = <Exports>(pages: number, functions: ReadonlyArray<WasmFunction>): (() => Exports) | null => {
  const bytes = moduleOf(pages, functions)
  if (!WebAssembly.validate(bytes)) return null
  const module = new WebAssembly.Module(bytes)
  return () => new WebAssembly.Instance<Exports>(module).exports
}
