import { dotKernel, dotKernelBatch, kernelBytes } from "./dotKernel.ts"

/**
 * Numbers as the checkpoint stores them. 16-bit values keep their bits in memory, so that the weights take as much
 * memory as the file states. They become float32 during computation, by a kernel or by a table with 65,536 entries.
 */
export type Tensor =
  | { readonly type: "float32"; readonly shape: ReadonlyArray<number>; readonly values: Float32Array }
  | { readonly type: "bfloat16" | "float16"; readonly shape: ReadonlyArray<number>; readonly bits: Uint16Array; readonly table: Float32Array }

let bfloat16: Float32Array | undefined
let float16: Float32Array | undefined

/** The float32 value of each of the 65,536 bfloat16 bit patterns. */
export const bfloat16Table = (): Float32Array => {
  if (bfloat16 !== undefined) return bfloat16
  const bits = Uint32Array.from({ length: 65_536 }, (_, pattern) => (pattern << 16) >>> 0)
  bfloat16 = new Float32Array(bits.buffer)
  return bfloat16
}

/** The float32 value of each of the 65,536 IEEE half-precision bit patterns. */
export const float16Table = (): Float32Array => {
  if (float16 !== undefined) return float16
  float16 = Float32Array.from({ length: 65_536 }, (_, pattern) => {
    const sign = pattern & 0x8000 ? -1 : 1
    const exponent = (pattern >>> 10) & 31
    const fraction = pattern & 1023
    if (exponent === 0) return sign * fraction * 2 ** -24
    if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
    return sign * (1024 + fraction) * 2 ** (exponent - 25)
  })
  return float16
}

/** Bytes of the conversion tables in use and of the kernel. */
export const tableBytes = () => (bfloat16?.byteLength ?? 0) + (float16?.byteLength ?? 0) + kernelBytes

const oneFloat = new Float32Array(1)
const oneWord = new Uint32Array(oneFloat.buffer)

/** The nearest bfloat16 bit pattern, ties to even. */
export const toBfloat16 = (value: number): number => {
  oneFloat[0] = value
  const word = oneWord[0] ?? 0
  return (word + 0x7fff + ((word >>> 16) & 1)) >>> 16
}

/** One product of a scalar product. The index is always in range; the engine inlines the calls. */
const term = (values: Float32Array, at: number, x: Float32Array, i: number) => (values[at] ?? 0) * (x[i] ?? 0)

/** The same with values that are looked up by their bits. */
const termOfBits = (bits: Uint16Array, table: Float32Array, at: number, x: Float32Array, i: number) => (table[bits[at] ?? 0] ?? 0) * (x[i] ?? 0)

const dotFloat32 = (out: Float32Array, values: Float32Array, x: Float32Array, rows: number, columns: number) => {
  const unrolled = columns - (columns & 3)
  for (let row = 0; row < rows; row++) {
    const base = row * columns
    let a = 0
    let b = 0
    let c = 0
    let d = 0
    for (let i = 0; i < unrolled; i += 4) {
      a += term(values, base + i, x, i)
      b += term(values, base + i + 1, x, i + 1)
      c += term(values, base + i + 2, x, i + 2)
      d += term(values, base + i + 3, x, i + 3)
    }
    for (let i = unrolled; i < columns; i++) a += term(values, base + i, x, i)
    out[row] = a + b + (c + d)
  }
}

const dotBits = (out: Float32Array, bits: Uint16Array, table: Float32Array, x: Float32Array, rows: number, columns: number) => {
  const unrolled = columns - (columns & 3)
  for (let row = 0; row < rows; row++) {
    const base = row * columns
    let a = 0
    let b = 0
    let c = 0
    let d = 0
    for (let i = 0; i < unrolled; i += 4) {
      a += termOfBits(bits, table, base + i, x, i)
      b += termOfBits(bits, table, base + i + 1, x, i + 1)
      c += termOfBits(bits, table, base + i + 2, x, i + 2)
      d += termOfBits(bits, table, base + i + 3, x, i + 3)
    }
    for (let i = unrolled; i < columns; i++) a += termOfBits(bits, table, base + i, x, i)
    out[row] = a + b + (c + d)
  }
}

/** `out = matrix · x` for a row-major matrix with `out.length` rows, with a fixed order of additions. */
export const multiply = (out: Float32Array, matrix: Tensor, x: Float32Array) => {
  if (matrix.type !== "float16" && dotKernel(out, matrix.type === "float32" ? matrix.values : matrix.bits, x)) return
  if (matrix.type === "float32") dotFloat32(out, matrix.values, x, out.length, x.length)
  else dotBits(out, matrix.bits, matrix.table, x, out.length, x.length)
}

/** The same for several vectors of one length, with the same bits. */
export const multiplyEach = (outs: ReadonlyArray<Float32Array>, matrix: Tensor, xs: ReadonlyArray<Float32Array>) => {
  if (matrix.type !== "float16" && dotKernelBatch(outs, matrix.type === "float32" ? matrix.values : matrix.bits, xs)) return
  for (const [index, out] of outs.entries()) multiply(out, matrix, xs[index] ?? out)
}

/** Copies row `index` of a matrix as float32 into `out`. */
export const copyRow = (out: Float32Array, matrix: Tensor, index: number) => {
  const base = index * out.length
  if (matrix.type === "float32") out.set(matrix.values.subarray(base, base + out.length))
  else for (let i = 0; i < out.length; i++) out[i] = matrix.table[matrix.bits[base + i] ?? 0] ?? 0
}

/** A small tensor, such as the weights of a norm, as float32. */
export const toFloat32 = (tensor: Tensor): Float32Array => {
  const out = new Float32Array(tensor.shape.reduce((product, side) => product * side, 1))
  copyRow(out, tensor, 0)
  return out
}
