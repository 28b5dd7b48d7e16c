import { assert, describe, it } from "@effect/vitest"
import { Commit, decideServing, type HostClass, type ModelConfig, type QuantizationScheme, type RepositoryFacts } from "@seatrial/domain"
import { computeCapability } from "../src/computeCapability.ts"
import { engines } from "../src/index.ts"
import { registeredQuantizations as sglangRegistered } from "../src/sglang/generated/quantizations.ts"
import { registeredQuantizations as vllmRegistered } from "../src/vllm/generated/quantizations.ts"
import { qwen2Config, qwen2Shape } from "./anyModel.ts"
import { realEngine } from "./realEngine.ts"

const gib = 2 ** 30
const cards = {
  t4: { gpu_pool: "Tesla-T4", memory: 15 },
  a100: { gpu_pool: "NVIDIA-A100-SXM4-80GB", memory: 80 },
  l4: { gpu_pool: "NVIDIA-L4", memory: 22 },
  h100: { gpu_pool: "NVIDIA-H100-80GB-HBM3", memory: 80 },
  b200: { gpu_pool: "NVIDIA-B200", memory: 178 },
  other: { gpu_pool: "a-card-of-tomorrow", memory: 80 }
} as const
type Card = keyof typeof cards

const classOf = (card: Card, runtimes: HostClass["runtimes"], gpus = 1): HostClass => ({
  name: `${card}x${gpus}`,
  runtimes,
  gpu_pool: cards[card].gpu_pool,
  gpu_count: gpus,
  gpu_memory_bytes: cards[card].memory * gib,
  price_per_gpu_hour_micros: String(cards[card].memory),
  simulated: false
})
const only = (runtime: "vllm" | "sglang") => [{ runtime, image: runtime }] as const
const both = [
  { runtime: "vllm", image: "vllm" },
  { runtime: "sglang", image: "sglang" }
] as const

const config: ModelConfig = { ...qwen2Config, dtype: "float16", shape: qwen2Shape }
const attention = { kind: "full", layers: 28, kv_heads: 4, head_size: 128, head_size_v: 128 } as const

const factsOf = (quantization: string, scheme: QuantizationScheme, more: Partial<ModelConfig> = {}): RepositoryFacts => ({
  repo: "org/model",
  ref: "main",
  commit: Commit.make("0123456789abcdef0123456789abcdef01234567"),
  license: null,
  gated: false,
  files: [],
  config: { ...config, quantization, quantization_scheme: scheme, ...more },
  weights_bytes: 5 * gib,
  parameters: 7_000_000_000,
  chat_template: null
})

const decide = (facts: RepositoryFacts, hostClasses: ReadonlyArray<HostClass>, request = {}) =>
  decideServing({ facts, ref: null, request, hostClasses, engines }).preview

/** `served`, or the message of the refusal. */
const verdict = (runtime: "vllm" | "sglang", card: Card, facts: RepositoryFacts, gpus = 1) => {
  const preview = decide(facts, [classOf(card, only(runtime), gpus)])
  return preview.kind === "refused" ? `${preview.reason.code}: ${preview.reason.message}` : "served"
}

const awq: QuantizationScheme = { bits: 4, group_size: 128, symmetric: false, format: "gemm" }
const gptq: QuantizationScheme = { bits: 4, group_size: 128, symmetric: true, desc_act: false }
const nvfp4: QuantizationScheme = {
  bits: 4,
  floating: true,
  activation_bits: 4,
  activation_floating: true,
  group_size: 16,
  symmetric: true,
  format: "nvfp4-pack-quantized"
}
const fp8: QuantizationScheme = { bits: 8, floating: true, activation_bits: 8, activation_floating: true, symmetric: true, format: "float-quantized" }
const w8a8: QuantizationScheme = { bits: 8, floating: false, activation_bits: 8, activation_floating: false, symmetric: true, format: "int-quantized" }
const w4a8: QuantizationScheme = {
  bits: 4,
  floating: false,
  activation_bits: 8,
  activation_floating: true,
  group_size: 128,
  symmetric: true,
  format: "pack-quantized"
}
const w4a16: QuantizationScheme = { bits: 4, floating: false, group_size: 128, symmetric: true, format: "pack-quantized" }
const experts = { ...qwen2Shape, intermediate_size: null, experts: { count: 64, active: 8, intermediate_size: 1_408 } }

type Row = readonly [what: string, facts: RepositoryFacts, vllm: Partial<Record<Card, string>>, sglang: Partial<Record<Card, string>>]
const rows: ReadonlyArray<Row> = [
  ["AWQ", factsOf("awq", awq), { t4: "served", a100: "served", h100: "served", other: "served" }, { t4: "served", a100: "served", b200: "served" }],
  ["AWQ of 3 bits", factsOf("awq", { ...awq, bits: 3 }), { h100: "3 bits" }, { h100: "3 bits" }],
  ["GPTQ", factsOf("gptq", gptq), { t4: "served", a100: "served" }, { t4: "8.0", a100: "served" }],
  ["GPTQ of 8 bits", factsOf("gptq", { ...gptq, bits: 8, group_size: -1 }), { a100: "served" }, { a100: "served" }],
  ["GPTQ in the order of activations", factsOf("gptq", { ...gptq, desc_act: true }), { h100: "desc_act" }, { h100: "served" }],
  ["GPTQ with zero points", factsOf("gptq", { ...gptq, symmetric: false }), { h100: "asymmetric" }, { h100: "asymmetric" }],
  ["GPTQ of 3 bits", factsOf("gptq", { ...gptq, bits: 3 }), { h100: "3 bits" }, { h100: "3 bits" }],
  ["compressed-tensors, 4-bit weights", factsOf("compressed-tensors", w4a16), { t4: "served", a100: "served" }, { t4: "8.0", a100: "served" }],
  ["compressed-tensors, FP8", factsOf("compressed-tensors", fp8), { a100: "served", l4: "served" }, { t4: "8.0", a100: "served", h100: "served" }],
  ["compressed-tensors, INT8", factsOf("compressed-tensors", w8a8), { t4: "served", h100: "served" }, { h100: "served" }],
  ["compressed-tensors, INT8 experts", factsOf("compressed-tensors", w8a8, { shape: experts }), { h100: "served" }, { h100: "no kernel for experts" }],
  ["compressed-tensors, 4-bit weights and FP8", factsOf("compressed-tensors", w4a8), { a100: "exactly 9.0", h100: "served", b200: "exactly 9.0" }, {}],
  [
    "NVFP4 of compressed-tensors",
    factsOf("compressed-tensors", nvfp4),
    { a100: "served", h100: "served", b200: "served" },
    { t4: "8.0", h100: "served", b200: "served" }
  ],
  ["NVFP4 of ModelOpt", factsOf("modelopt", { format: "NVFP4", group_size: 16 }), { t4: "served", b200: "served" }, { t4: "8.0", b200: "served" }],
  ["FP8 of ModelOpt", factsOf("modelopt", { format: "FP8" }), { t4: "8.0", a100: "served" }, { a100: "8.9", l4: "served" }],
  ["an algorithm of ModelOpt", factsOf("modelopt", { format: "W4A8_AWQ" }), { h100: "W4A8_AWQ" }, { h100: "W4A8_AWQ" }],
  ["FP8", factsOf("fp8", { group_size: 128 }), { t4: "served", a100: "served" }, { t4: "8.0", a100: "served" }],
  ["MXFP4", factsOf("mxfp4", {}), { t4: "8.0", a100: "served", b200: "served" }, { t4: "8.0", h100: "served" }],
  ["MXFP8", factsOf("mxfp8", {}), { a100: "served" }, { h100: "10.0", b200: "served" }],
  ["bitsandbytes", factsOf("bitsandbytes", { bits: 4, format: "nf4" }), { h100: "bitsandbytes" }, { h100: "is not installed" }],
  ["GGUF", factsOf("gguf", {}), { h100: "gguf" }, { h100: "only safetensors" }],
  ["what vLLM has given up", factsOf("fbgemm_fp8", {}), { h100: "fbgemm_fp8" }, { h100: "fbgemm_fp8" }],
  ["a method of nobody", factsOf("of_nobody", {}), { h100: "of_nobody" }, { h100: "of_nobody" }]
]

describe("quantized checkpoints", () => {
  for (const [what, facts, ...expected] of rows) {
    for (const [at, runtime] of (["vllm", "sglang"] as const).entries()) {
      for (const [card, wanted] of Object.entries(expected[at] ?? {})) {
        const known = Object.keys(cards).find((name): name is Card => name === card)
        it(`${what} by ${runtime} on ${card}: ${wanted === "served" ? "is served" : `is refused for ${wanted}`}`, () => {
          assert.isDefined(known)
          const verdictText = known === undefined ? "" : verdict(runtime, known, facts)
          if (wanted === "served") assert.strictEqual(verdictText, "served")
          else {
            assert.include(verdictText, wanted)
            assert.match(verdictText, /^unsupported_architecture: /)
          }
        })
      }
    }
  }

  it("that another card or runtime serves are refused with settings that can be sent unchanged", () => {
    const facts = factsOf("modelopt", { format: "FP8" })
    const classes = [classOf("t4", both), classOf("h100", both)]
    const refused = decide(facts, classes, { host_class: "t4x1" })
    assert.strictEqual(refused.kind, "refused")
    if (refused.kind !== "refused") return
    const serving = refused.remedy.serving
    assert.deepInclude(serving, { host_class: "h100x1", runtime: "vllm" })
    assert.strictEqual(decide(facts, classes, serving ?? {}).kind, "derived")
    const ordered = decide(factsOf("gptq", { ...gptq, desc_act: true }), [classOf("h100", both)])
    assert.deepInclude(ordered.kind === "refused" ? ordered.remedy.serving : null, { runtime: "sglang" })
  })

  it("are not split inside a group of quantized values, unless whole experts are distributed", () => {
    const narrow = { ...qwen2Shape, intermediate_size: 29_568 }
    const wide = { num_attention_heads: 64, num_kv_heads: 8, hidden_size: 8_192, shape: { ...narrow, layers: [{ ...attention, kv_heads: 8 }] } }
    for (const runtime of ["vllm", "sglang"] as const) {
      assert.include(verdict(runtime, "h100", factsOf("gptq", gptq, wide), 8), "29568")
      assert.match(verdict(runtime, "h100", factsOf("gptq", gptq, wide), 8), /^does_not_fit/)
      assert.strictEqual(verdict(runtime, "h100", factsOf("gptq", { ...gptq, group_size: -1 }, wide), 8), "served")
      assert.strictEqual(verdict(runtime, "h100", factsOf("none", {}, wide), 8), "served")
    }
    const blocks = factsOf(
      "fp8",
      { group_size: 128 },
      {
        ...wide,
        architecture: "Qwen3MoeForCausalLM",
        shape: { ...wide.shape, intermediate_size: null, experts: { count: 160, active: 8, intermediate_size: 2_560 } }
      }
    )
    for (const [runtime, whole, cut] of [
      ["vllm", { enable_expert_parallel: true }, { enable_expert_parallel: false }],
      ["sglang", { ep_size: 8 }, { ep_size: 1 }]
    ] as const) {
      const h100 = [classOf("h100", only(runtime), 8)]
      const chosen = decide(blocks, h100)
      assert.deepInclude(chosen.kind === "derived" ? chosen.serving.engine_flags : {}, whole)
      assert.strictEqual(decide(blocks, h100, { engine_flags: whole }).kind, "derived")
      assert.strictEqual(decide(blocks, h100, { engine_flags: cut }).kind, "refused")
    }
  })

  it("get an 8-bit KV cache only on cards that support it, and the remedy leaves it out", () => {
    const ask = (card: Card, facts: RepositoryFacts, runtime: "vllm" | "sglang" = "vllm") =>
      decide(facts, [classOf(card, only(runtime))], { kv_cache_dtype: "fp8" })
    const plain = factsOf("none", {})
    assert.deepStrictEqual([ask("a100", plain).kind, ask("l4", plain).kind, ask("h100", plain).kind], ["derived", "derived", "derived"])
    const old = ask("t4", plain)
    assert.deepInclude(old.kind === "refused" ? old.reason : {}, { code: "unsupported_format" })
    assert.deepInclude(old.kind === "refused" ? old.remedy.serving : {}, { kv_cache_dtype: "auto" })
    // No backend of these cards supports an 8-bit cache with heads of 80 values.
    const odd = factsOf("none", {}, { shape: { ...qwen2Shape, layers: [{ ...attention, head_size: 80, head_size_v: 80 }] } })
    assert.deepStrictEqual([ask("a100", odd).kind, ask("h100", odd).kind], ["refused", "derived"])
    assert.deepStrictEqual([ask("t4", plain, "sglang").kind, ask("a100", odd, "sglang").kind], ["refused", "derived"])
  })

  it("are only offered if the engine registers the method", () => {
    for (const [runtime, registered] of [["vllm", vllmRegistered] as const, ["sglang", sglangRegistered] as const]) {
      for (const method of realEngine(runtime).quantizations)
        assert.isTrue(["none", "auto-round", "gptq"].includes(method) || Object.hasOwn(registered, method), `${runtime} ${method}`)
    }
  })
})

describe("the compute capability of a card", () => {
  const labels: ReadonlyArray<readonly [string, number | null]> = [
    ["NVIDIA-H100-80GB-HBM3", 90],
    ["NVIDIA-H100-NVL", 90],
    ["NVIDIA-H200", 90],
    ["NVIDIA-GH200-480GB", 90],
    ["NVIDIA-H20", 90],
    ["NVIDIA-A100-PCIE-40GB", 80],
    ["NVIDIA-A10G", 86],
    ["NVIDIA-A10", 86],
    ["NVIDIA-A40", 86],
    ["NVIDIA-RTX-A6000", 86],
    ["NVIDIA-RTX-6000-Ada-Generation", 89],
    ["NVIDIA-L4", 89],
    ["NVIDIA-L40S", 89],
    ["NVIDIA-GeForce-RTX-4090", 89],
    ["NVIDIA-GeForce-RTX-3090", 86],
    ["NVIDIA-GeForce-RTX-5090", 120],
    ["NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 120],
    ["NVIDIA-B200", 100],
    ["NVIDIA-GB200", 100],
    ["NVIDIA-B300", 103],
    ["NVIDIA-GB10", 121],
    ["Tesla-T4", 75],
    ["Quadro-RTX-8000", 75],
    ["Tesla-V100-SXM2-16GB", 70],
    ["NVIDIA A100 80GB", 80],
    ["AMD-Instinct-MI300X", null],
    ["simulated", null]
  ]
  for (const [label, capability] of labels) it(`${label}: ${capability}`, () => assert.strictEqual(computeCapability(label), capability))
})
