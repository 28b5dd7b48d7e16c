import type { Tensor } from "../../src/Tensor.ts"

/** The product of `Tensor.ts` with sums from the end and in float32, so that it is rounded differently. */
export const multiplyBackwards = (out: Float32Array, matrix: Tensor, x: Float32Array) => {
  const columns = x.length
  for (let row = 0; row < out.length; row++) {
    const base = row * columns
    let sum = 0
    for (let i = columns - 1; i >= 0; i--) {
      const weight = matrix.type === "float32" ? (matrix.values[base + i] ?? 0) : (matrix.table[matrix.bits[base + i] ?? 0] ?? 0)
      sum = Math.fround(sum + weight * (x[i] ?? 0))
    }
    out[row] = sum
  }
}
