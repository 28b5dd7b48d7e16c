import { assert, describe, it } from "@effect/vitest"
import { Commit, decideServing, type HostClass, type KvCacheDtype, type LayerGroup, type ModelConfig } from "@seatrial/domain"
import { engines } from "../src/index.ts"
import { qwen2Config, qwen2Shape } from "./anyModel.ts"
import { realEngine } from "./realEngine.ts"

const gib = 2 ** 30
const pools = {
  v100: "Tesla-V100-SXM2-32GB",
  t4: "Tesla-T4",
  a100: "NVIDIA-A100-SXM4-80GB",
  l4: "NVIDIA-L4",
  h100: "NVIDIA-H100-80GB-HBM3",
  b200: "NVIDIA-B200",
  rtx: "NVIDIA-GeForce-RTX-5090",
  unknown: "a-card-of-tomorrow"
} as const
type Card = keyof typeof pools

const heads = (size: number): LayerGroup => ({ kind: "full", layers: 28, kv_heads: 4, head_size: size, head_size_v: size })
const vision = { layers: 27, hidden_size: 1_152, intermediate_size: 4_304, patches: 4_096, image_tokens: 256 }
const model = (model_type: string, layers: ReadonlyArray<LayerGroup>, more: Partial<ModelConfig> = {}): ModelConfig => ({
  ...qwen2Config,
  architecture: "AnyForCausalLM",
  model_type,
  hidden_size: 2_048,
  num_attention_heads: 16,
  vocab_size: 151_936,
  shape: { ...qwen2Shape, layers, intermediate_size: 6_144, tied_embeddings: true },
  ...more
})
const plain = model("qwen3", [heads(128)])
const latents: LayerGroup = { kind: "latent", layers: 27, latent_size: 576, index_bytes: 0, absorbed_values: 1_000_000 }
const models = {
  plain,
  gemma2: model("gemma2", [heads(256)]),
  gptOss: model("gpt_oss", [heads(64)]),
  deepseek: model("deepseek_v2", [latents], { architecture: "DeepseekV2ForCausalLM" }),
  hybrid: model("qwen3_next", [heads(256), { kind: "state", layers: 21, conv_values: 8_192, state_values: 524_288, state_float32: true }]),
  mamba: model("mamba2", [{ kind: "state", layers: 64, conv_values: 8_192, state_values: 524_288, state_float32: true }]),
  odd: model("phi", [heads(80)]),
  narrow: model("small", [heads(16)]),
  wide: model("gemma4_text", [heads(512)]),
  sees: model("gemma3", [heads(256)], {
    architecture: "Gemma3ForConditionalGeneration",
    shape: { layers: [heads(256)], intermediate_size: 6_144, experts: null, vision, tied_embeddings: true, softcapped_logits: false }
  })
} as const
type Model = keyof typeof models

/** The flag that is refused (null: none) on a card, for a model, with flags and a cache type. */
type Case = readonly [refused: string | null, card: Card, model: Model, flags: Readonly<Record<string, unknown>>, cache?: KvCacheDtype]

const cases: Readonly<Record<"vllm" | "sglang", ReadonlyArray<Case>>> = {
  vllm: [
    [null, "h100", "plain", {}],
    ["dtype", "h100", "gemma2", { dtype: "float16" }],
    [null, "h100", "gemma2", { dtype: "bfloat16" }],
    ["dtype", "t4", "plain", { dtype: "bfloat16" }],
    [null, "t4", "plain", { dtype: "auto" }],
    [null, "unknown", "plain", { dtype: "bfloat16" }],
    ["quantization", "v100", "plain", { quantization: "fp8" }],
    [null, "t4", "plain", { quantization: "fp8" }],
    ["batch_invariant", "t4", "plain", { batch_invariant: true }],
    ["batch_invariant", "h100", "hybrid", { batch_invariant: true }],
    ["batch_invariant", "a100", "plain", { batch_invariant: true }, "fp8"],
    [null, "h100", "plain", { batch_invariant: true, attention_backend: "FLASH_ATTN" }, "fp8"],
    [null, "h100", "deepseek", { batch_invariant: true }],
    [null, "t4", "plain", { batch_invariant: false }],
    ["attention_backend", "unknown", "plain", { batch_invariant: true, attention_backend: "FLASHINFER" }],
    ["attention_backend", "b200", "plain", { batch_invariant: true, attention_backend: "FLASH_ATTN" }, "fp8"],
    ["attention_backend", "unknown", "deepseek", { attention_backend: "FLASH_ATTN" }],
    ["attention_backend", "t4", "plain", { attention_backend: "FLASH_ATTN" }],
    ["attention_backend", "t4", "plain", { attention_backend: "FLASHINFER" }],
    [null, "t4", "plain", { attention_backend: "TRITON_ATTN" }],
    ["attention_backend", "l4", "plain", { attention_backend: "FLASH_ATTN" }, "fp8"],
    [null, "l4", "plain", { attention_backend: "FLASHINFER" }, "fp8"],
    [null, "h100", "plain", { attention_backend: "FLASH_ATTN" }, "fp8"],
    ["attention_backend", "b200", "hybrid", { attention_backend: "FLASH_ATTN" }, "fp8"],
    ["attention_backend", "a100", "plain", { attention_backend: "TRITON_ATTN" }, "fp8"],
    ["attention_backend", "h100", "plain", { attention_backend: "FLEX_ATTENTION" }, "fp8"],
    ["attention_backend", "h100", "gptOss", { attention_backend: "FLEX_ATTENTION" }],
    ["attention_backend", "a100", "gptOss", { attention_backend: "FLASH_ATTN" }],
    ["attention_backend", "a100", "gptOss", { attention_backend: "FLASHINFER" }],
    [null, "h100", "gptOss", { attention_backend: "FLASH_ATTN" }],
    ["attention_backend", "h100", "odd", { attention_backend: "FLASHINFER" }],
    [null, "h100", "odd", { attention_backend: "FLASH_ATTN" }],
    ["attention_backend", "a100", "wide", { attention_backend: "FLASH_ATTN" }],
    [null, "h100", "wide", { attention_backend: "FLASH_ATTN" }, "fp8"],
    ["attention_backend", "h100", "narrow", { attention_backend: "TRITON_ATTN" }],
    ["attention_backend", "h100", "sees", { attention_backend: "FLASHINFER", limit_mm_per_prompt: { image: 2 } }],
    ["attention_backend", "h100", "sees", { attention_backend: "FLASH_ATTN", limit_mm_per_prompt: { image: 2 } }],
    [null, "h100", "sees", { attention_backend: "FLASHINFER", language_model_only: true }],
    [null, "h100", "mamba", { attention_backend: "FLASHINFER" }]
  ],
  sglang: [
    [null, "h100", "plain", {}],
    [null, "t4", "plain", { dtype: "bfloat16" }],
    ["quantization", "t4", "plain", { quantization: "fp8" }],
    ["quantization", "h100", "plain", { quantization: "mxfp8" }],
    [null, "b200", "plain", { quantization: "mxfp8" }],
    [null, "a100", "plain", { attention_backend: "fa3" }],
    ["attention_backend", "a100", "deepseek", { attention_backend: "fa3" }],
    ["attention_backend", "b200", "plain", { attention_backend: "fa3" }],
    ["attention_backend", "t4", "plain", { attention_backend: "fa3" }],
    ["attention_backend", "a100", "plain", { attention_backend: "trtllm_mha" }],
    [null, "h100", "plain", { attention_backend: "trtllm_mha" }],
    ["attention_backend", "unknown", "deepseek", { attention_backend: "trtllm_mha" }],
    ["attention_backend", "rtx", "plain", { attention_backend: "trtllm_mha" }, "fp8"],
    [null, "rtx", "plain", { attention_backend: "trtllm_mha" }, "fp8_e5m2"],
    [null, "h100", "plain", { attention_backend: "fa4" }],
    ["attention_backend", "h100", "deepseek", { attention_backend: "flashinfer", enable_deterministic_inference: true }],
    ["attention_backend", "h100", "deepseek", { attention_backend: "fa4", enable_deterministic_inference: true }],
    [null, "b200", "deepseek", { attention_backend: "fa4", enable_deterministic_inference: true }],
    ["enable_deterministic_inference", "t4", "plain", { enable_deterministic_inference: true }],
    ["enable_deterministic_inference", "a100", "deepseek", { enable_deterministic_inference: true }],
    [null, "h100", "deepseek", { enable_deterministic_inference: true }],
    [null, "b200", "deepseek", { enable_deterministic_inference: true }],
    [null, "t4", "plain", { enable_deterministic_inference: true, attention_backend: "triton" }]
  ]
}

for (const runtime of ["vllm", "sglang"] as const) {
  describe(`flags that prevent a start of ${runtime}`, () => {
    for (const [refused, card, of, flags, cacheDtype] of cases[runtime]) {
      const what = `of ${of} on ${card}, ${JSON.stringify(flags)}${cacheDtype === undefined ? "" : ` and a cache of ${cacheDtype}`}`
      it(`${what}: ${refused === null ? "none is refused" : `${refused} is refused`}`, () => {
        const load = { config: models[of], flags, card: { gpu_pool: pools[card], gpu_count: 1, gpu_memory_bytes: 80 * gib }, maxContext: 8_192 }
        const issue = realEngine(runtime).loadIssue?.(cacheDtype === undefined ? load : { ...load, cacheDtype }) ?? null
        assert.strictEqual(issue?.flag ?? null, refused, issue?.message)
        if (issue !== null) assert.match(issue.message, /^[a-z_]+ .{20,}\.$/)
      })
    }
  })
}

describe("a preview", () => {
  const classOf = (card: Card): HostClass => ({
    name: card,
    runtimes: [{ runtime: "vllm", image: "vllm" }],
    gpu_pool: pools[card],
    gpu_count: 1,
    gpu_memory_bytes: 80 * gib,
    price_per_gpu_hour_micros: card === "t4" ? "1" : "9",
    simulated: false
  })
  const facts = {
    repo: "org/model",
    ref: "main",
    commit: Commit.make("0123456789abcdef0123456789abcdef01234567"),
    license: null,
    gated: false,
    files: [],
    config: { ...plain, architecture: "Qwen3ForCausalLM" },
    weights_bytes: 4 * gib,
    parameters: 2 * gib,
    chat_template: null
  }
  const ask = (cards: ReadonlyArray<Card>) =>
    decideServing({ facts, ref: null, request: { engine_flags: { attention_backend: "FLASH_ATTN" } }, hostClasses: cards.map(classOf), engines }).preview

  it("chooses a card on which the flags work, or refuses with settings that work", () => {
    const elsewhere = ask(["t4", "h100"])
    assert.strictEqual(elsewhere.kind === "derived" ? elsewhere.serving.host_class : null, "h100")
    assert.deepStrictEqual(elsewhere.kind === "derived" ? elsewhere.alternatives : null, [])
    const refused = ask(["t4"])
    assert.match(refused.kind === "refused" ? refused.reason.message : "", /FLASH_ATTN cannot run Qwen3ForCausalLM on Tesla-T4 \(compute capability 7\.5\)/)
    const { serving } = refused.kind === "refused" ? refused.remedy : { serving: null }
    assert.strictEqual(serving?.host_class, "t4")
    assert.notProperty(serving?.engine_flags ?? {}, "attention_backend")
  })

  it("skips a chat template with long whitespace, which would block the parser for 15 seconds", () => {
    for (const gap of [" ", "\n", "\t"]) {
      const template = `{{ messages[0].content }}${gap.repeat(60_000)}{% endif %}`
      const { preview } = decideServing({ facts: { ...facts, chat_template: template }, ref: null, request: {}, hostClasses: [classOf("h100")], engines })
      assert.strictEqual(preview.kind, "derived")
    }
  })

  it("explains the spelling of a flag that was written as on a command line", () => {
    for (const flag of ["max-num-seqs", "--max-num-seqs", "MAX_NUM_SEQS"])
      assert.match(realEngine("vllm").flagIssue({ [flag]: 4 })?.message ?? "", new RegExp(`^${flag} is refused: it is written max_num_seqs\\.`))
  })
})
