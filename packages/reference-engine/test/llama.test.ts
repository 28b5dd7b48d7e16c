import { referenceRope } from "@seatrial/engines/reference"
import { describe, expect, it } from "vitest"
import { batchSize } from "../src/dotKernel.ts"
import { KvPool, KvSequence, type KvType, kvShape } from "../src/KvCache.ts"
import { Llama } from "../src/Llama.ts"
import { readWeights } from "../src/LlamaWeights.ts"
import { readModelConfig } from "../src/ModelConfig.ts"
import { ropeAttention, ropeFrequencies, rotate } from "../src/Rope.ts"
import { Safetensors } from "../src/Safetensors.ts"
import { slowLogits } from "./slowLlama.ts"
import { randomTensors, type SmallModel, small, type Tensors, writeModel } from "./smallModel.ts"

const tokens = [504, 3, 77, 300, 77, 12, 499, 8, 256, 41, 41, 41, 130, 2, 66, 508, 90, 91, 7, 215]

const load = (model: SmallModel, tensors: Tensors, type: KvType, shards = 1) => {
  const directory = writeModel(model, tensors, shards)
  const { config } = readModelConfig(directory)
  const llama = new Llama(config, readWeights(config, new Safetensors(directory)), 128)
  const pool = new KvPool(kvShape(config, 4, type), 64)
  const run = (ids: ReadonlyArray<number>, atOnce = 1): ReadonlyArray<Float32Array> => {
    const cache = new KvSequence(pool)
    const out: Array<Float32Array> = []
    while (out.length < ids.length) {
      const position = out.length
      const step = ids.slice(position, position + atOnce)
      for (const index of step.keys()) expect(cache.reserve(position + index)).toBe(true)
      out.push(...llama.step(step, position, cache, true).map((logits) => Float32Array.from(logits)))
    }
    cache.release()
    return out
  }
  return { run, pool }
}

const last = (all: ReadonlyArray<Float32Array>) => all[all.length - 1] ?? new Float32Array(0)
const furthest = (a: ArrayLike<number>, b: ArrayLike<number>) => Math.max(...Array.from(a, (value, i) => Math.abs(value - (b[i] ?? Number.NaN))))

describe("the forward pass", () => {
  const llama3 = { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 64 }
  const cases: ReadonlyArray<readonly [string, SmallModel, KvType, number]> = [
    ["float32, grouped heads", small, "float32", 1e-4],
    ["one KV head for all query heads", { ...small, kvHeads: 1 }, "float32", 1e-4],
    ["a KV head for each query head", { ...small, kvHeads: 6 }, "float32", 1e-4],
    ["tied output head", { ...small, tied: true }, "float32", 1e-4],
    ["linear rope scaling", { ...small, ropeScaling: { rope_type: "linear", factor: 4 } }, "float32", 1e-4],
    ["llama3 rope scaling, theta 500,000", { ...small, ropeTheta: 500_000, ropeScaling: llama3 }, "float32", 1e-4],
    ["llama3 rope scaling, theta 10", { ...small, ropeTheta: 10, ropeScaling: llama3 }, "float32", 1e-4],
    ["yarn, every pair stretched alike", { ...small, ropeScaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 4 } }, "float32", 1e-4],
    [
      "yarn, from pairs that stay to pairs that are stretched",
      { ...small, headDim: 16, ropeTheta: 10, ropeScaling: { rope_type: "yarn", factor: 8, original_max_position_embeddings: 32 } },
      "float32",
      1e-4
    ],
    ["bfloat16 weights, float32 cache", { ...small, type: "BF16" }, "float32", 1e-4],
    ["float16 weights, float32 cache", { ...small, type: "F16" }, "float32", 1e-4],
    ["bfloat16 weights and cache", { ...small, type: "BF16" }, "bfloat16", 0.1]
  ]
  for (const [name, model, type, tolerance] of cases) {
    it(`equals an independent float64 implementation: ${name}`, () => {
      const tensors = randomTensors(model, 11)
      const expected = slowLogits(model, tensors, tokens)
      expect(Math.max(...expected) - Math.min(...expected)).toBeGreaterThan(2)
      expect(furthest(last(load(model, tensors, type).run(tokens)), expected)).toBeLessThan(tolerance)
    })
  }

  it("gives the same bits from a sharded checkpoint", () => {
    const tensors = randomTensors(small, 5)
    expect(last(load(small, tensors, "float32", 3).run(tokens))).toEqual(last(load(small, tensors, "float32").run(tokens)))
  })

  it("with a cache has at every position the bits of a full recomputation", () => {
    const { pool, run } = load({ ...small, type: "BF16" }, randomTensors(small, 3), "bfloat16")
    const stepwise = run(tokens)
    for (let length = 1; length <= tokens.length; length++) expect(stepwise[length - 1]).toEqual(last(run(tokens.slice(0, length))))
    expect(pool.used).toBe(0)
  })

  it.each(["BF16", "F16", "F32"] as const)("has the same bits however many tokens are computed at once: %s", (type) => {
    const { run } = load({ ...small, type }, randomTensors(small, 3), "bfloat16")
    for (let atOnce = 2; atOnce <= batchSize; atOnce++) expect(run(tokens, atOnce)).toEqual(run(tokens))
  })

  it("reads KV head floor(h / group) for query head h, and no other", () => {
    const model = { ...small, layers: 1 }
    const answer = (heads: ReadonlyArray<number>, changed: number | null) => {
      const tensors = randomTensors(model, 9)
      const output = tensors.get("model.layers.0.self_attn.o_proj.weight")?.values ?? new Float32Array(0)
      for (let i = 0; i < output.length; i++) if (!heads.includes(Math.floor((i % (model.heads * model.headDim)) / model.headDim))) output[i] = 0
      for (const part of changed === null ? [] : ["k_proj", "v_proj"]) {
        const kv = tensors.get(`model.layers.0.self_attn.${part}.weight`)?.values ?? new Float32Array(0)
        kv.subarray(((changed ?? 0) * kv.length) / 2, (((changed ?? 0) + 1) * kv.length) / 2).fill(0.25)
      }
      return last(load(model, tensors, "float32").run(tokens))
    }
    expect(furthest(answer([0, 1, 2], 1), answer([0, 1, 2], null))).toBe(0)
    expect(furthest(answer([3, 4, 5], 0), answer([3, 4, 5], null))).toBe(0)
    for (const head of [0, 1, 2]) expect(furthest(answer([head], 0), answer([head], null))).toBeGreaterThan(1e-3)
    for (const head of [3, 4, 5]) expect(furthest(answer([head], 1), answer([head], null))).toBeGreaterThan(1e-3)
  })

  it("changes its logits when one number of one tensor changes", () => {
    const plain = last(load(small, randomTensors(small, 2), "float32").run(tokens))
    for (const name of randomTensors(small, 2).keys()) {
      const tensors = randomTensors(small, 2)
      const values = tensors.get(name)?.values ?? new Float32Array(0)
      const index = name === "model.embed_tokens.weight" ? 504 * small.hidden : 0
      values[index] = (values[index] ?? 0) + 0.5
      expect(furthest(last(load(small, tensors, "float32").run(tokens)), plain), name).toBeGreaterThan(0)
    }
  })
})

describe("rotary embedding", () => {
  const turned = (x: ReadonlyArray<number>, position: number) => {
    const frequencies = ropeFrequencies({ theta: 10_000, scaling: { kind: "none" } }, x.length)
    const out = Float32Array.from(x)
    rotate(
      out,
      x.length,
      Float32Array.from(frequencies, (f) => Math.cos(f * position)),
      Float32Array.from(frequencies, (f) => Math.sin(f * position))
    )
    return out
  }
  const dot = (a: Float32Array, b: Float32Array) => a.reduce((total, value, i) => total + value * (b[i] ?? 0), 0)

  it("leaves position 0 unchanged and preserves lengths", () => {
    const x = [1, -2, 3, 0.5, -1, 4, 2, 1]
    expect([...turned(x, 0)]).toEqual(x)
    expect(dot(turned(x, 37), turned(x, 37))).toBeCloseTo(dot(turned(x, 0), turned(x, 0)), 4)
  })

  it("makes products depend on the distance only", () => {
    const q = [1, -2, 3, 0.5, -1, 4, 2, 1]
    const k = [0.3, 2, -1, 1, 1, 0.2, -3, 2]
    expect(dot(turned(q, 19), turned(k, 12))).toBeCloseTo(dot(turned(q, 107), turned(k, 100)), 3)
    expect(Math.abs(dot(turned(q, 19), turned(k, 12)) - dot(turned(q, 19), turned(k, 13)))).toBeGreaterThan(0.1)
  })

  it("is scaled by YaRN as in Transformers: computed by hand for four pairs", () => {
    // Base 10,000, 8 dimensions, 4096 tokens: 32 turns at pair 1.31, one turn at pair 2.81. Linear from 1 to 3.
    const rope = referenceRope({ rope_type: "yarn", factor: 4, original_max_position_embeddings: 4_096 }, 10_000, 16_384)
    if (typeof rope === "string") throw new Error(rope)
    const expected = [1, 0.1, 0.01 * (0.5 + 0.5 / 4), 0.001 / 4]
    expect([...ropeFrequencies(rope, 8)].map((frequency, i) => frequency / (expected[i] ?? 0))).toEqual(expected.map(() => expect.closeTo(1, 9)))
    expect(ropeAttention(rope)).toBeCloseTo(0.1 * Math.log(4) + 1, 12)
    const own = { rope_type: "yarn", factor: 40, mscale: 0.8, mscale_all_dim: 1, original_max_position_embeddings: 4_096 }
    const scaled = referenceRope(own, 10_000, 163_840)
    expect(typeof scaled === "string" ? 0 : ropeAttention(scaled)).toBeCloseTo((0.08 * Math.log(40) + 1) / (0.1 * Math.log(40) + 1), 12)
  })

  it("pairs dimension i with i + half", () => {
    const out = turned([1, 0, 0, 0], 1)
    expect(out[0]).toBeCloseTo(Math.cos(1), 6)
    expect(out[2]).toBeCloseTo(Math.sin(1), 6)
    expect([out[1], out[3]]).toEqual([0, 0])
  })
})
