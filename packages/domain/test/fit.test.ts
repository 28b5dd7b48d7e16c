import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { llama8bConfig } from "../../../test/models/modelConfigs.ts"
import {
  derivePreview,
  type EngineContract,
  type EngineMemory,
  type HostClass,
  kvBytesPerToken,
  type ModelConfig,
  nothingServed,
  type RepositoryFacts,
  type WeightParts
} from "../src/index.ts"
import { fit, isFit } from "./fit.ts"

const gib = 2 ** 30
const llama8b: ModelConfig = llama8bConfig
const none = { low: 0, high: 0 }
const memory: EngineMemory = {
  budget: ({ card }) => card.gpu_memory_bytes * 0.9,
  blockTokens: () => 16,
  kvValueBytes: (_, dtype) => (dtype === "auto" ? 2 : 1),
  stepTokens: () => 8_192,
  sequences: () => 256,
  latentAlignment: 1,
  statesPerSequence: () => 1,
  extraLoadedBytes: 0,
  halvesFloat32: false,
  expertPadding: () => ({ low: 1, high: 1 }),
  overhead: () => ({ activation: { low: 1 * gib, high: 3 * gib }, runtime: none, graphs: none, afterPool: none })
}
const engine: EngineContract = {
  runtime: "reference",
  version: "reference-test",
  architectures: new Set(["LlamaForCausalLM"]),
  quantizations: new Set(["none"]),
  kvCacheDtypes: new Set(["auto", "fp8"]),
  memory,
  served: nothingServed,
  flagIssue: () => null
}
const hostClass = (name: string, memory: number, count = 1, price = "1000000"): HostClass => ({
  name,
  runtimes: [{ runtime: "reference", image: "i" }],
  gpu_pool: `card-${name}`,
  gpu_count: count,
  gpu_memory_bytes: memory,
  price_per_gpu_hour_micros: price,
  simulated: true
})
const input = { config: llama8b, weightsBytes: 16_060_522_496, engine, kvCacheDtype: "auto", contextLimit: 131_072 } as const

describe("fit", () => {
  it("KV bytes per token match the published arithmetic: 2 x heads x size x layers x bytes", () => {
    assert.strictEqual(kvBytesPerToken({ ...llama8b, num_layers: 80 }, { gpuCount: 1, valueBytes: 1, latentAlignment: 1 }), 163_840)
    assert.strictEqual(kvBytesPerToken(llama8b, { gpuCount: 1, valueBytes: 2, latentAlignment: 1 }), 131_072)
  })
  it("KV heads are replicated if there are fewer than GPUs", () => {
    assert.strictEqual(kvBytesPerToken(llama8b, { gpuCount: 8, valueBytes: 2, latentAlignment: 1 }), 131_072 / 8)
    assert.strictEqual(kvBytesPerToken(llama8b, { gpuCount: 16, valueBytes: 2, latentAlignment: 1 }), 131_072 / 8)
  })

  it("counts unquantized 8-bit values twice if the engine computes in 16 bits, and 32-bit values half", () => {
    const parts = { replicated: 0, key_value: 0, embeddings: 0, towers: 0, experts: 0, float32: 0, unloaded: 0 }
    const weights = (weightParts: WeightParts) => {
      const result = fit({ ...input, engine: { ...engine, memory: { ...memory, halvesFloat32: true } }, weightParts, hostClass: hostClass("large", 80 * gib) })
      return isFit(result) ? result.weights_bytes : assert.fail("it does not fit")
    }
    const plain = weights(parts)
    assert.strictEqual(weights({ ...parts, float8: input.weightsBytes }), 2 * plain)
    assert.strictEqual(weights({ ...parts, float32: input.weightsBytes }), plain / 2)
  })

  it("counts one layer's fused experts once on each GPU at most, if the engine's loader leaves their memory", () => {
    const parts = { replicated: 0, key_value: 0, embeddings: 0, towers: 0, experts: 0, float32: 0, unloaded: 0 }
    const overhead = (keepsFusedExperts: boolean, weightParts: WeightParts) => {
      const result = fit({ ...input, engine: { ...engine, memory: { ...memory, keepsFusedExperts } }, weightParts, hostClass: hostClass("two", 80 * gib, 2) })
      return isFit(result) ? result.overhead_bytes : assert.fail("it does not fit")
    }
    const without = overhead(true, parts)
    const fused = { ...parts, fused_experts: gib }
    assert.deepStrictEqual(overhead(true, fused), { low: without.low, high: without.high + gib })
    assert.deepStrictEqual(overhead(false, fused), without)
  })

  const verdicts: ReadonlyArray<readonly [promise: string, memory: number, context: number, expected: string]> = [
    ["a model with room to spare fits", 80 * gib, 8_192, "fits"],
    ["a model that fits only with the lower bound of the overhead is tight", 22 * gib, 16_384, "tight"],
    ["a model whose weights alone are too large does not fit", 12 * gib, 16, "refused"]
  ]
  for (const [promise, memory, maxContext, expected] of verdicts) {
    it(promise, () => {
      const result = fit({ ...input, hostClass: hostClass("h", memory), maxContext })
      assert.strictEqual(isFit(result) ? result.verdict : "refused", expected)
    })
  }

  it.prop(
    "components never exceed the budget, and a longer context never fits if a shorter one does not",
    [Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 200 })), Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 131_072 }))],
    ([memory, maxContext]) => {
      const result = fit({ ...input, hostClass: hostClass("h", memory * gib), maxContext })
      const longer = fit({ ...input, hostClass: hostClass("h", memory * gib), maxContext: maxContext + 16 })
      if (!isFit(result)) return !isFit(longer)
      const overhead = result.verdict === "fits" ? result.overhead_bytes.high : result.overhead_bytes.low
      return result.weights_bytes + result.kv_cache_bytes + overhead <= memory * gib * 0.9 && result.concurrent_sequences >= 1
    }
  )

  it.prop(
    "without a requested context, the longest that fits is chosen, and one block more does not fit",
    [Schema.Int.check(Schema.isBetween({ minimum: 21, maximum: 60 }))],
    ([memory]) => {
      const chosen = fit({ ...input, hostClass: hostClass("h", memory * gib) })
      if (!isFit(chosen)) return true
      if (chosen.max_context === 131_072) return chosen.verdict === "fits"
      const more = fit({ ...input, hostClass: hostClass("h", memory * gib), maxContext: chosen.max_context + 16 })
      return !isFit(more) || more.verdict === "tight"
    }
  )
})

const facts: RepositoryFacts = {
  repo: "meta/llama",
  ref: "main",
  // The brand is checked by decoding; this is a literal of its form.
  commit: Schema.decodeSync(Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}$/u)).pipe(Schema.brand("Commit")))("a".repeat(40)),
  license: "llama3",
  gated: false,
  files: [],
  config: llama8b,
  weights_bytes: 16_060_522_496,
  parameters: 8_030_261_248,
  chat_template: "{{ messages }}"
}
const preview = (request: Parameters<typeof derivePreview>[0]["request"], classes = [hostClass("big", 80 * gib, 1, "3000000"), hostClass("small", 12 * gib)]) =>
  derivePreview({ facts, ref: null, request, hostClasses: classes, engines: [engine] })

describe("previews", () => {
  it("the cheapest host class that fits is chosen, and sending its settings gives the same answer", () => {
    const first = preview({})
    assert.strictEqual(first.kind, "derived")
    if (first.kind !== "derived") return
    assert.strictEqual(first.serving.host_class, "big")
    assert.deepStrictEqual(preview(first.serving), first)
  })

  const refusals: ReadonlyArray<readonly [promise: string, result: ReturnType<typeof preview>, code: string, remedy: boolean]> = [
    ["an unknown host class is refused by name, with one that fits as the remedy", preview({ host_class: "none" }), "host_class_unknown", true],
    [
      "an unknown host class is refused without settings if none fits",
      preview({ host_class: "none" }, [hostClass("small", 12 * gib)]),
      "host_class_unknown",
      false
    ],
    [
      "a runtime that no host class offers is refused with another one as the remedy",
      preview({ runtime: "sglang", engine_flags: { page_size: 16 } }),
      "host_class_unknown",
      true
    ],
    ["a request without any configured host class is refused", preview({}, []), "host_class_unknown", false],
    ["a context beyond the model's limit is refused with the longest one as the remedy", preview({ max_context: 200_000 }), "context_too_long", true],
    ["a host class that is too small is refused with a larger one as the remedy", preview({ host_class: "small" }), "does_not_fit", true],
    ["a model that is too large for all host classes is refused", preview({}, [hostClass("small", 12 * gib)]), "does_not_fit", false],
    [
      "a context that does not fit is refused with one that fits as the remedy",
      preview({ max_context: 100_000 }, [hostClass("mid", 24 * gib)]),
      "does_not_fit",
      true
    ]
  ]
  it("a host class with an unknown engine is refused without settings", () => {
    const hostClasses = [hostClass("big", 80 * gib)]
    for (const request of [{}, { host_class: "none" }] as const) {
      const answer = derivePreview({ facts, ref: null, request, hostClasses, engines: [] })
      assert.deepNestedInclude(answer, { "reason.code": "host_class_unknown", "remedy.serving": null })
    }
  })

  for (const [promise, result, code, remedy] of refusals) {
    it(promise, () => {
      assert.strictEqual(result.kind, "refused")
      if (result.kind !== "refused") return
      assert.strictEqual(result.reason.code, code)
      assert.isNotEmpty(result.remedy.message)
      assert.strictEqual(result.remedy.serving !== null, remedy)
      if (result.remedy.serving !== null)
        assert.strictEqual(
          preview(result.remedy.serving, [hostClass("big", 80 * gib), hostClass("mid", 24 * gib), hostClass("small", 12 * gib)]).kind,
          "derived"
        )
    })
  }
})
