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
  type WasmFunction,
  type WasmMemory,
  zeroed
} from "./wasm.ts"

type Multiply = (weights: number, sums: number, rows: number, last: number) => void

interface Exports {
  readonly memory: WasmMemory
  readonly multiplyBfloat16: Multiply
  readonly multiplyFloat32: Multiply
}

/** Maximum number of columns: this many float64 values fill the first page. */
const maxColumns = page / 8
/** Weights fill two pages at most. Their sums fill the fourth page. */
const weightPages = 2
const weightsAt = page
const sumsAt = weightsAt + weightPages * page
const pages = 4

/** Bytes of the kernel's memory. */
export const kernelBytes = pages * page

const [weights, sums, rows, last, x, low, high, four] = [0, 1, 2, 3, 4, 5, 6, 7]

/**
 * Sums each row in four partial sums of every fourth product, `a + b + (c + d)`, in float64. The result has the same
 * bits as without the kernel. `loadedFour` loads four weights of `bytes` as float32.
 */
const sumsOf = (loadedFour: ReadonlyArray<number>, bytes: number) =>
  loop([
    ...[...assigned(x, 0), ...zeroed(low), ...zeroed(high)],
    ...loop([
      ...[...get(weights), ...loadedFour, ...set(four)],
      ...accumulated(low, firstTwo(four), [...get(x), ...loaded()]),
      ...accumulated(high, lastTwo(four), [...get(x), ...loaded(16)]),
      ...[...increased(weights, 4 * bytes), ...increased(x, 32), ...isBelow(x, last)]
    ]),
    ...[...get(sums), ...laneOf(low, 0), ...laneOf(low, 1), ...addedFloat64, ...laneOf(high, 0), ...laneOf(high, 1), ...addedFloat64, ...addedFloat64],
    ...[...storedFloat32, ...increased(sums, 4), ...counted(rows)]
  ])

const multiplication = (name: string, body: ReadonlyArray<number>): WasmFunction => ({
  name,
  parameters: [i32, i32, i32, i32],
  result: [],
  locals: [
    [1, i32],
    [3, v128]
  ],
  body
})

const makeKernel = compile<Exports>(pages, [
  multiplication("multiplyBfloat16", sumsOf(loadedBfloat16, Uint16Array.BYTES_PER_ELEMENT)),
  multiplication("multiplyFloat32", sumsOf(loaded(), Float32Array.BYTES_PER_ELEMENT))
])

const make = ({ memory: { buffer }, multiplyBfloat16, multiplyFloat32 }: Exports) => ({
  multiplyBfloat16,
  multiplyFloat32,
  x: new Float64Array(buffer, 0, maxColumns),
  bits: new Uint16Array(buffer, weightsAt, (weightPages * page) / 2),
  values: new Float32Array(buffer, weightsAt, (weightPages * page) / 4),
  sums: new Float32Array(buffer, sumsAt, page / 4)
})

const kernel = makeKernel === null ? null : make(makeKernel())

/**
 * `out = matrix · x` for a row-major matrix of float32 values or of the bits of bfloat16 values. Returns false if this
 * machine or these sizes are not supported.
 */
export const dotKernel = (out: Float32Array, matrix: Uint16Array | Float32Array, x: Float32Array): boolean => {
  const columns = x.length
  if (kernel === null || columns === 0 || columns > maxColumns || columns % 4 !== 0) return false
  kernel.x.set(x)
  const isFloat32 = matrix instanceof Float32Array
  const [weights, multiply] = isFloat32 ? [kernel.values, kernel.multiplyFloat32] : [kernel.bits, kernel.multiplyBfloat16]
  const most = Math.floor(weights.length / columns)
  for (let row = 0; row < out.length; row += most) {
    const rows = Math.min(most, out.length - row)
    weights.set(matrix.subarray(row * columns, (row + rows) * columns))
    multiply(weightsAt, sumsAt, rows, columns * 8)
    out.set(kernel.sums.subarray(0, rows), row)
  }
  return true
}
