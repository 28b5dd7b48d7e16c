import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { batchSize, dotKernel, dotKernelBatch } from "../src/dotKernel.ts"
import { bfloat16Table, multiply } from "../src/Tensor.ts"
import { words } from "./words.ts"

const Matrix = Schema.Struct({
  rows: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })),
  columns: Schema.Literals([4, 8, 36, 128, 4_096, 8_192]),
  /** Whether every bit pattern may occur, including infinities, subnormal numbers and NaN. */
  any: Schema.Boolean,
  seed: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))
})

const filled = (rows: number, columns: number, seed: number, any = false) => {
  const next = words(seed)
  const bits = Uint16Array.from({ length: rows * columns }, () => (any ? next() : (next() & 0x807f) | ((120 + (next() % 10)) << 7)))
  const x = Float32Array.from({ length: columns }, () => next() / 2 ** 31 - 1)
  return { bits, x }
}

const float32Of = (bits: Uint16Array) => Float32Array.from(bits, (each) => bfloat16Table()[each] ?? 0)

/** Four sums of every fourth product in each row, without the kernel. */
const plainly = (values: Float32Array, x: Float32Array) =>
  Float32Array.from({ length: values.length / x.length }, (_, row) => {
    const sums = [0, 0, 0, 0]
    for (const [i, each] of x.entries()) sums[i % 4] = (sums[i % 4] ?? 0) + (values[row * x.length + i] ?? 0) * each
    const [a = 0, b = 0, c = 0, d = 0] = sums
    return a + b + (c + d)
  })

describe("products of bfloat16 and float32 weights", () => {
  it.prop("have the same bits with the kernel for all sizes", [Matrix], ([{ any, columns, rows, seed }]) => {
    const { bits, x } = filled(rows, columns, seed, any)
    const values = float32Of(bits)
    for (const matrix of [bits, values]) {
      const fast = new Float32Array(rows)
      assert.isTrue(dotKernel(fast, matrix, x))
      assert.deepStrictEqual([...fast], [...plainly(values, x)])
      const xs = Array.from({ length: batchSize }, (_, more) => filled(1, columns, seed + more).x)
      const outs = xs.map(() => new Float32Array(rows))
      assert.isTrue(dotKernelBatch(outs, matrix, xs))
      for (const [index, out] of outs.entries()) assert.deepStrictEqual([...out], [...plainly(values, xs[index] ?? out)])
    }
  })

  it.each([6, 8_196])("are computed without the kernel if there are too many columns: %d", (columns) => {
    const { bits, x } = filled(3, columns, 7)
    const [slow, plain] = [new Float32Array(3), new Float32Array(3)]
    assert.isFalse(dotKernel(slow, bits, x))
    assert.isFalse(dotKernel(plain, float32Of(bits), x))
    multiply(slow, { type: "bfloat16", shape: [3, columns], bits, table: bfloat16Table() }, x)
    multiply(plain, { type: "float32", shape: [3, columns], values: float32Of(bits) }, x)
    assert.deepStrictEqual([...slow], [...plain])
  })
})
