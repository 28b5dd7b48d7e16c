import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Attention } from "../src/Attention.ts"
import { makeAttentionKernel } from "../src/attentionKernel.ts"
import { words } from "./words.ts"

const Shape = Schema.Struct({
  headDim: Schema.Literals([4, 8, 32, 64, 100]),
  kvHeads: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 })),
  queriesOfHead: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3 })),
  count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })),
  window: Schema.Literals([1, 7, 1_000]),
  /** Whether some values are infinite, NaN or zero. */
  any: Schema.Boolean,
  seed: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))
})

describe("attention of a query", () => {
  it.prop("has the same bits with the kernel and without it, for all sizes", [Shape], ([{ any, count, headDim, kvHeads, queriesOfHead, seed, window }]) => {
    const next = words(seed)
    const odd = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, 0, -0]
    const number = () => (any && next() % 50 === 0 ? (odd[next() % odd.length] ?? 0) : next() / 2 ** 31 - 1)
    const heads = kvHeads * queriesOfHead
    const width = kvHeads * headDim
    const kernel = makeAttentionKernel(headDim, width, 40)
    assert.isNotNull(kernel)
    const [fast, plain] = [kernel, null].map((each) => new Attention({ heads, kvHeads, headDim }, 40, each))
    const query = Float32Array.from({ length: heads * headDim }, number)
    const [keys, values] = [0, 1].map(() => Float32Array.from({ length: 40 * width }, number))
    const settings = { kvHeadOf: Int32Array.from({ length: heads }, (_, head) => Math.floor(head / queriesOfHead)), window, attentionScale: 0.3 }
    const [a, b] = [fast, plain].map((attention) => {
      const out = new Float32Array(heads * headDim)
      attention?.keys.set(keys ?? [])
      attention?.values.set(values ?? [])
      attention?.attend(out, query, count, settings)
      return [...out]
    })
    assert.deepStrictEqual(a, b)
  })

  it("is computed without the kernel if the head size is no multiple of four, or the sequence needs more than 2 GiB", () => {
    assert.isNull(makeAttentionKernel(6, 12, 40))
    assert.isNull(makeAttentionKernel(128, 1_024, 1_048_576))
  })
})
