import type { Tensor } from "../../src/Tensor.ts"

const float32Of = new WeakMap<Tensor, Float32Array>()

const valuesOf = (matrix: Tensor): Float32Array => {
  if (matrix.type === "float32") return matrix.values
  const known = float32Of.get(matrix)
  if (known !== undefined) return known
  const values = Float32Array.from(matrix.bits, (pattern) => matrix.table[pattern] ?? 0)
  float32Of.set(matrix, values)
  return values
}

/**
 * The product of `Tensor.ts` with sums from the end and in float32, so that it is rounded differently. Four rows at once,
 * because each addition waits for the one before it.
 */
export const multiplyBackwards = (out: Float32Array, matrix: Tensor, x: Float32Array) => {
  const values = valuesOf(matrix)
  const columns = x.length
  for (let row = 0; row < out.length; row += 4) {
    const base = row * columns
    let [a, b, c, d] = [0, 0, 0, 0]
    for (let i = columns - 1; i >= 0; i--) {
      const each = x[i] ?? 0
      a = Math.fround(a + (values[base + i] ?? 0) * each)
      b = Math.fround(b + (values[base + columns + i] ?? 0) * each)
      c = Math.fround(c + (values[base + 2 * columns + i] ?? 0) * each)
      d = Math.fround(d + (values[base + 3 * columns + i] ?? 0) * each)
    }
    // A typed array ignores values past its end.
    out[row] = a
    out[row + 1] = b
    out[row + 2] = c
    out[row + 3] = d
  }
}
