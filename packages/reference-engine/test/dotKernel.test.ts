import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { dotKernel } from "../src/dotKernel.ts"
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

describe("products of bfloat16 weights", () => {
  it.prop("have the same bits as those of float32 weights for all sizes", [Matrix], ([{ any, columns, rows, seed }]) => {
    const { bits, x } = filled(rows, columns, seed, any)
    const shape = [rows, columns]
    const [fast, plain] = [new Float32Array(rows), new Float32Array(rows)]
    assert.isTrue(dotKernel(fast, bits, x))
    multiply(plain, { type: "float32", shape, values: Float32Array.from(bits, (each) => bfloat16Table()[each] ?? 0) }, x)
    assert.deepStrictEqual([...fast], [...plain])
  })

  it.each([6, 8_196])("are computed without the kernel if there are too many columns: %d", (columns) => {
    const { bits, x } = filled(3, columns, 7)
    const [slow, plain] = [new Float32Array(3), new Float32Array(3)]
    assert.isFalse(dotKernel(slow, bits, x))
    multiply(slow, { type: "bfloat16", shape: [3, columns], bits, table: bfloat16Table() }, x)
    multiply(plain, { type: "float32", shape: [3, columns], values: Float32Array.from(bits, (each) => bfloat16Table()[each] ?? 0) }, x)
    assert.deepStrictEqual([...slow], [...plain])
  })
})
