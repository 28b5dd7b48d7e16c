import {
  accumulated,
  addedFloat64,
  assigned,
  compile,
  counted,
  firstTwo,
  get,
  i32,
  increased,
  isBelow,
  laneOf,
  lastTwo,
  loaded,
  loadedBfloat16,
  loop,
  page,
  set,
  storedFloat32,
  v128,
  type WasmMemory,
  zeroed
} from "./wasm.ts"

interface Exports {
  readonly memory: WasmMemory
  readonly multiply: (weights: number, sums: number, rows: number, last: number) => void
}

/** Maximum number of columns: this many float64 values fill the first page. */
const maxColumns = page / 8
/** Maximum number of bfloat16 values at once: two pages. Their sums fill the fourth page. */
const maxValues = page
const weightsAt = page
const sumsAt = 3 * page
const pages = 4

/** Bytes of the kernel's memory. */
export const kernelBytes = pages * page

const [weights, sums, rows, last, x, low, high, four] = [0, 1, 2, 3, 4, 5, 6, 7]

/**
 * Sums each row in four partial sums of every fourth product, `a + b + (c + d)`, in float64. The result has the same
 * bits as `dotBits`.
 */
const body = loop([
  ...[...assigned(x, 0), ...zeroed(low), ...zeroed(high)],
  ...loop([
    ...[...get(weights), ...loadedBfloat16, ...set(four)],
    ...accumulated(low, firstTwo(four), [...get(x), ...loaded()]),
    ...accumulated(high, lastTwo(four), [...get(x), ...loaded(16)]),
    ...[...increased(weights, 8), ...increased(x, 32), ...isBelow(x, last)]
  ]),
  ...[...get(sums), ...laneOf(low, 0), ...laneOf(low, 1), ...addedFloat64, ...laneOf(high, 0), ...laneOf(high, 1), ...addedFloat64, ...addedFloat64],
  ...[...storedFloat32, ...increased(sums, 4), ...counted(rows)]
])

const makeKernel = compile<Exports>(pages, [
  {
    name: "multiply",
    parameters: [i32, i32, i32, i32],
    result: [],
    locals: [
      [1, i32],
      [3, v128]
    ],
    body
  }
])

const make = ({ memory: { buffer }, multiply }: Exports) => ({
  multiply,
  x: new Float64Array(buffer, 0, maxColumns),
  weights: new Uint16Array(buffer, weightsAt, maxValues),
  sums: new Float32Array(buffer, sumsAt, page / 4)
})

const kernel = makeKernel === null ? null : make(makeKernel())

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
    kernel.multiply(weightsAt, sumsAt, rows, columns * 8)
    out.set(kernel.sums.subarray(0, rows), row)
  }
  return true
}
