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
  readonly oneBfloat16: Multiply
  readonly oneFloat32: Multiply
  readonly batchBfloat16: Multiply
  readonly batchFloat32: Multiply
}

/** Number of vectors that are multiplied at once: each weight is loaded and widened once for all of them. */
export const batchSize = 4

/** Maximum number of columns: this many float64 values of each vector fill the first pages. */
const maxColumns = page / 8
/** Weights fill two pages at most, and the sums of each vector one page. */
const weightPages = 2
const weightsAt = batchSize * page
const sumsAt = weightsAt + weightPages * page
const pages = batchSize + weightPages + batchSize

/** Bytes of the kernel's memory. */
export const kernelBytes = pages * page

const [weights, sums, rows, last, x, four, firstPair, lastPair] = [0, 1, 2, 3, 4, 5, 6, 7]

/**
 * Sums each row in four partial sums of every fourth product, `a + b + (c + d)`, in float64. The result has the same
 * bits as without the kernel, however many vectors there are. Of several vectors, each four values of one follow those
 * of the one before, and so do their sums. `loadedFour` loads four weights of `bytes` as float32.
 */
const sumsOf = (loadedFour: ReadonlyArray<number>, bytes: number, vectors: number) => {
  const partial = Array.from({ length: vectors }, (_, index) => ({ low: 8 + 2 * index, high: 9 + 2 * index, offset: 32 * index }))
  return loop([
    ...[...assigned(x, 0), ...partial.flatMap(({ high, low }) => [...zeroed(low), ...zeroed(high)])],
    ...loop([
      ...[...get(weights), ...loadedFour, ...set(four), ...firstTwo(four), ...set(firstPair), ...lastTwo(four), ...set(lastPair)],
      ...partial.flatMap(({ high, low, offset }) => [
        ...accumulated(low, get(firstPair), [...get(x), ...loaded(offset)]),
        ...accumulated(high, get(lastPair), [...get(x), ...loaded(offset + 16)])
      ]),
      ...[...increased(weights, 4 * bytes), ...increased(x, 32 * vectors), ...isBelow(x, last)]
    ]),
    ...partial.flatMap(({ high, low }) => [
      ...[...get(sums), ...laneOf(low, 0), ...laneOf(low, 1), ...addedFloat64, ...laneOf(high, 0), ...laneOf(high, 1), ...addedFloat64, ...addedFloat64],
      ...[...storedFloat32, ...increased(sums, 4)]
    ]),
    ...counted(rows)
  ])
}

const multiplication = (name: string, loadedFour: ReadonlyArray<number>, bytes: number, vectors: number): WasmFunction => ({
  name,
  parameters: [i32, i32, i32, i32],
  result: [],
  locals: [
    [1, i32],
    [3 + 2 * vectors, v128]
  ],
  body: sumsOf(loadedFour, bytes, vectors)
})

const [twoBytes, fourBytes] = [Uint16Array.BYTES_PER_ELEMENT, Float32Array.BYTES_PER_ELEMENT]

const makeKernel = compile<Exports>(pages, [
  multiplication("oneBfloat16", loadedBfloat16, twoBytes, 1),
  multiplication("oneFloat32", loaded(), fourBytes, 1),
  multiplication("batchBfloat16", loadedBfloat16, twoBytes, batchSize),
  multiplication("batchFloat32", loaded(), fourBytes, batchSize)
])

const make = ({ batchBfloat16, batchFloat32, memory: { buffer }, oneBfloat16, oneFloat32 }: Exports) => ({
  bfloat16: { one: oneBfloat16, batch: batchBfloat16, weights: new Uint16Array(buffer, weightsAt, (weightPages * page) / twoBytes) },
  float32: { one: oneFloat32, batch: batchFloat32, weights: new Float32Array(buffer, weightsAt, (weightPages * page) / fourBytes) },
  x: new Float64Array(buffer, 0, batchSize * maxColumns),
  sums: new Float32Array(buffer, sumsAt, (batchSize * page) / fourBytes)
})

const kernel = makeKernel === null ? null : make(makeKernel())

type Matrix = Uint16Array | Float32Array

/** Whether this machine and these sizes are supported. */
const supports = (columns: number): boolean => kernel !== null && columns > 0 && columns <= maxColumns && columns % 4 === 0

/** Multiplies as many rows at once as have room. `vectors` are in the kernel's memory. `put` takes the sums from a row on. */
const multiplyRows = (matrix: Matrix, columns: number, height: number, vectors: number, put: (row: number, sums: Float32Array) => void) => {
  if (kernel === null) return
  const { batch, one, weights } = matrix instanceof Float32Array ? kernel.float32 : kernel.bfloat16
  const multiply = vectors === 1 ? one : batch
  const most = Math.floor(weights.length / columns)
  for (let row = 0; row < height; row += most) {
    const rows = Math.min(most, height - row)
    weights.set(matrix.subarray(row * columns, (row + rows) * columns))
    multiply(weightsAt, sumsAt, rows, columns * 8 * vectors)
    put(row, kernel.sums.subarray(0, rows * vectors))
  }
}

/**
 * `out = matrix · x` for a row-major matrix of float32 values or of the bits of bfloat16 values. Returns false if this
 * machine or these sizes are not supported.
 */
export const dotKernel = (out: Float32Array, matrix: Matrix, x: Float32Array): boolean => {
  if (kernel === null || !supports(x.length)) return false
  kernel.x.set(x)
  multiplyRows(matrix, x.length, out.length, 1, (row, sums) => out.set(sums, row))
  return true
}

/** The same for `batchSize` vectors of one length, with the same bits. */
export const dotKernelBatch = (outs: ReadonlyArray<Float32Array>, matrix: Matrix, xs: ReadonlyArray<Float32Array>): boolean => {
  const [{ length: columns } = new Float32Array(), { length: height } = new Float32Array()] = [xs[0], outs[0]]
  if (kernel === null || xs.length !== batchSize || !supports(columns)) return false
  for (const [index, x] of xs.entries()) {
    for (let i = 0; i < columns; i += 4) {
      const place = batchSize * i + 4 * index
      kernel.x[place] = x[i] ?? 0
      kernel.x[place + 1] = x[i + 1] ?? 0
      kernel.x[place + 2] = x[i + 2] ?? 0
      kernel.x[place + 3] = x[i + 3] ?? 0
    }
  }
  multiplyRows(matrix, columns, height, batchSize, (row, sums) => {
    for (const [index, out] of outs.entries()) {
      for (let i = index, at = row; i < sums.length; i += batchSize, at++) out[at] = sums[i] ?? 0
    }
  })
  return true
}
