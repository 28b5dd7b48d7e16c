/** The part of the global that is used here. The types of Node.js do not declare it. */
declare const WebAssembly: {
  readonly validate: (bytes: Uint8Array) => boolean
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (
    module: object
  ) => {
    readonly exports: { readonly m: { readonly buffer: ArrayBuffer }; readonly f: (weights: number, sums: number, rows: number, last: number) => void }
  }
}

/** Bytes of a WebAssembly page. */
const page = 65_536
/** Maximum number of columns: this many float64 values fill the first page. */
const maxColumns = page / 8
/** Maximum number of bfloat16 values at once: two pages. Their sums fill the fourth page. */
const maxValues = page
const weightsAt = page
const sumsAt = 3 * page

/** Bytes of the kernel's memory. */
export const kernelBytes = 4 * page

// WebAssembly's opcodes, https://webassembly.github.io/spec/core/binary/instructions.html.
const simd = 0xfd
const i32 = 0x7f
const v128 = 0x7b
const empty = 0x40
const end = 0x0b
const get = (local: number) => [0x20, local]
const set = (local: number) => [0x21, local]
const constant = (value: number) => [0x41, ...signed(value)]
const added = 0x6a

function signed(value: number): ReadonlyArray<number> {
  const low = value & 0x7f
  const rest = value >> 7
  return (rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40) ? [low] : [low | 0x80, ...signed(rest)]
}

const [weights, sums, rows, last, x, low, high, four] = [0, 1, 2, 3, 4, 5, 6, 7]
const increased = (local: number, by: number) => [...get(local), ...constant(by), added, ...set(local)]
/** Converts the first two of four float32 values to float64. */
const promoted = [simd, 0x5f]
const second = [simd, 0x0d, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]
/**
 * Adds the products of two weights, which `two` leaves on the stack, and two values of `x` to a vector of two float64.
 */
const accumulated = (into: number, two: ReadonlyArray<number>, offset: number) => [
  ...get(into),
  ...two,
  ...promoted,
  ...get(x),
  simd,
  0x00,
  3,
  offset,
  simd,
  0xf2,
  1,
  simd,
  0xf0,
  1,
  ...set(into)
]
const zeroed = (local: number) => [simd, 0x0c, ...Array.from({ length: 16 }, () => 0), ...set(local)]
const laneOf = (local: number, lane: number) => [...get(local), simd, 0x21, lane]

/**
 * Sums each row in four partial sums of every fourth product, `a + b + (c + d)`, in float64. The result has the same
 * bits as `dotBits`.
 */
const code = [
  ...[0x03, empty],
  ...[...constant(0), ...set(x), ...zeroed(low), ...zeroed(high)],
  ...[0x03, empty],
  // Widens four bfloat16 values to float32 by moving them to the upper half.
  ...[...get(weights), simd, 0x04, 3, 0, ...constant(16), simd, 0xab, 1, ...set(four)],
  ...accumulated(low, get(four), 0),
  ...accumulated(high, [...get(four), ...get(four), ...second], 16),
  ...increased(weights, 8),
  ...increased(x, 32),
  ...[...get(x), ...get(last), 0x49, 0x0d, 0, end],
  ...[...get(sums), ...laneOf(low, 0), ...laneOf(low, 1), 0xa0, ...laneOf(high, 0), ...laneOf(high, 1), 0xa0, 0xa0, 0xb6, 0x38, 2, 0],
  ...increased(sums, 4),
  ...[...increased(rows, -1), ...get(rows), 0x0d, 0, end],
  end
]
const unsigned = (value: number): ReadonlyArray<number> => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)])
const sized = (content: ReadonlyArray<number>) => [...unsigned(content.length), ...content]
const section = (id: number, content: ReadonlyArray<number>) => [id, ...sized(content)]
const module = Uint8Array.from([
  ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...section(1, [1, 0x60, 4, i32, i32, i32, i32, 0]),
  ...section(3, [1, 0]),
  ...section(5, [1, 0, kernelBytes / page]),
  ...section(7, [2, 1, 0x6d, 2, 0, 1, 0x66, 0, 0]),
  ...section(10, [1, ...sized([2, 1, i32, 3, v128, ...code])])
])

const make = () => {
  const { f, m } = new WebAssembly.Instance(new WebAssembly.Module(module)).exports
  return {
    run: f,
    x: new Float64Array(m.buffer, 0, maxColumns),
    weights: new Uint16Array(m.buffer, weightsAt, maxValues),
    sums: new Float32Array(m.buffer, sumsAt, page / 4)
  }
}

const kernel = WebAssembly.validate(module) ? make() : null

/**
 * `out = matrix · x` for a row-major matrix of bfloat16 values. Returns false if this machine or these sizes are not
 * supported.
 */
export const dotKernel = (out: Float32Array, bits: Uint16Array, x: Float32Array): boolean => {
  const columns = x.length
  if (kernel === null || columns === 0 || columns > maxColumns || columns % 4 !== 0) return false
  kernel.x.set(x)
  const most = Math.floor(maxValues / columns)
  for (let row = 0; row < out.length; row += most) {
    const rows = Math.min(most, out.length - row)
    kernel.weights.set(bits.subarray(row * columns, (row + rows) * columns))
    kernel.run(weightsAt, sumsAt, rows, columns * 8)
    out.set(kernel.sums.subarray(0, rows), row)
  }
  return true
}
