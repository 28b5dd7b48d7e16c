import { assert, describe, it } from "@effect/vitest"
import { inLatents, kvBytesPerToken, sequenceBytes } from "@seatrial/domain"
import { Result, Schema } from "effect"
import { parseModelConfig } from "../src/modelConfig.ts"

const base = {
  architectures: ["AnyForCausalLM"],
  hidden_size: 4096,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  num_hidden_layers: 12,
  max_position_embeddings: 131_072,
  vocab_size: 32_000,
  torch_dtype: "bfloat16"
}
const parse = (config: Readonly<Record<string, unknown>>) => Result.getOrThrow(parseModelConfig(config, "BF16"))
const layersOf = (config: Readonly<Record<string, unknown>>) => (parse(config).shape?.layers ?? []).map(({ kind, layers }) => `${layers} ${kind}`).sort()

describe("the layers of a model", () => {
  it.each([
    [
      "named one by one",
      { model_type: "gpt_oss", sliding_window: 128, layer_types: [...Array(6)].flatMap(() => ["sliding_attention", "full_attention"]) },
      ["6 full", "6 sliding"]
    ],
    ["in periods of two, as in Gemma 2", { model_type: "gemma2" }, ["6 full", "6 sliding"]],
    ["in periods of six, as in Gemma 3", { model_type: "gemma3_text", sliding_window: 1024 }, ["10 sliding", "2 full"]],
    ["by a pattern of letters", { model_type: "exaone4", sliding_window: 4096, sliding_window_pattern: "LLLG" }, ["3 full", "9 sliding"]],
    ["all with a window", { model_type: "phi3", sliding_window: 2047 }, ["12 sliding"]],
    ["in chunks except without position encoding", { model_type: "llama4_text", attention_chunk_size: 8192, no_rope_layers: [] }, ["3 full", "9 chunked"]],
    ["in chunks of the class's length if none is stated", { model_type: "llama4_text" }, ["3 full", "9 chunked"]],
    ["full if chunks are switched off, as in the engines", { model_type: "llama4_text", attention_chunk_size: null }, ["12 full"]],
    [
      "by Nemotron's letters",
      {
        model_type: "nemotron_h",
        hybrid_override_pattern: "M-M*M-M-M*ME",
        mamba_num_heads: 64,
        mamba_head_dim: 64,
        ssm_state_size: 128,
        n_groups: 8,
        conv_kernel: 4
      },
      ["2 full", "6 state"]
    ],
    [
      "by Jamba's period",
      { model_type: "jamba", attn_layer_period: 4, attn_layer_offset: 2, mamba_d_state: 16, mamba_d_conv: 4, mamba_expand: 2 },
      ["3 full", "9 state"]
    ],
    [
      "by an interval of linear attention",
      {
        model_type: "qwen3_next",
        full_attention_interval: 4,
        linear_num_value_heads: 32,
        linear_value_head_dim: 128,
        linear_num_key_heads: 16,
        linear_key_head_dim: 128
      },
      ["3 full", "9 state"]
    ],
    ["by MiniMax's ones and zeros", { model_type: "minimax", attn_type_list: [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1] }, ["3 full", "9 state"]],
    ["by the indexes of layers with attention", { model_type: "lfm2", full_attn_idxs: [2, 5, 8, 10], conv_L_cache: 3 }, ["4 full", "8 state"]],
    ["twice, as in LongCat", { model_type: "longcat_flash", num_layers: 12, kv_lora_rank: 512, qk_rope_head_dim: 64 }, ["24 latent"]],
    ["in periods of four, as in Olmo 3", { model_type: "olmo3", sliding_window: 4096 }, ["3 full", "9 sliding"]],
    ["in periods of five, as in Gemma 3n", { model_type: "gemma3n_text", sliding_window: 512 }, ["10 sliding", "2 full"]],
    ["in periods whose first layer has no window", { model_type: "granite_swa", sliding_window: 512 }, ["3 full", "9 sliding"]],
    ["all without a window if a family's own rule is unknown", { model_type: "muse_spark_text", sliding_window: 512 }, ["12 full"]],
    ["without the window that Qwen's do not use by default", { model_type: "qwen2", sliding_window: 4096 }, ["12 full"]],
    [
      "in periods of four, as with gated delta networks",
      { model_type: "olmo_hybrid", linear_num_value_heads: 4, linear_value_head_dim: 64, linear_num_key_heads: 4, linear_key_head_dim: 64 },
      ["3 full", "9 state"]
    ],
    [
      "by words, with Kimi's states under newer names",
      {
        model_type: "kimi_linear",
        layer_types: Array.from({ length: 12 }, (_, index) => (index % 4 === 3 ? "full_attention" : "linear_attention")),
        linear_num_heads: 32,
        linear_head_dim: 128,
        linear_conv_kernel_dim: 4,
        kv_lora_rank: 512,
        qk_rope_head_dim: 0
      },
      ["3 latent", "9 state"]
    ],
    ["as latents", { model_type: "deepseek_v3", kv_lora_rank: 512, qk_rope_head_dim: 64, qk_nope_head_dim: 128, v_head_dim: 128 }, ["12 latent"]],
    [
      "as both at once",
      {
        model_type: "falcon_h1",
        mamba_n_heads: 32,
        mamba_d_head: 64,
        mamba_d_state: 128,
        mamba_n_groups: 1,
        mamba_d_conv: 4
      },
      ["12 full", "12 state"]
    ],
    [
      "without those that share an earlier layer's cache",
      { model_type: "gemma3n_text", sliding_window: 512, sliding_window_pattern: 4, num_kv_shared_layers: 4 },
      ["2 full", "6 sliding"]
    ],
    [
      "by blocks, some of them without attention",
      {
        model_type: "nemotron-nas",
        block_configs: [...Array(12)].map((_, index) => ({ attention: index < 4 ? { no_op: true } : { n_heads_in_group: index < 8 ? 4 : 8 } }))
      },
      ["4 full", "4 full"]
    ]
  ] as const)("are read if they are stated %s", (_, config, expected) => {
    assert.deepStrictEqual(layersOf({ ...base, ...config }), [...expected])
  })

  it("are those of the text model within a thinker, whose tower is its own", () => {
    const thinker_config = {
      text_config: { ...base, architectures: undefined },
      vision_config: { depth: 27, hidden_size: 1_152, patch_size: 16, image_size: 768 }
    }
    const omni = { architectures: ["AnyOmni"], thinker_config }
    assert.deepStrictEqual(layersOf(omni), ["12 full"])
    assert.deepInclude(parse(omni).shape?.vision, { layers: 27, hidden_size: 1_152, patches: 48 ** 2 })
  })

  it("are recognized next to a tower with listed sides", () => {
    const patches = (vision_config: Readonly<Record<string, unknown>>) => parse({ ...base, vision_config }).shape?.vision?.patches
    assert.strictEqual(patches({ image_size: [448, 448], patch_size: [14, 14] }), 1_024)
    assert.strictEqual(patches({ image_size: [448, "448"], patch_size: 14 }), 65_536)
  })

  it.each([
    ["an unknown kind of layer", { layer_types: Array(12).fill("telepathic_attention") }, "UnsupportedArchitecture", "telepathic_attention"],
    ["an unknown letter", { hybrid_override_pattern: "MMMMMMMMMMMX" }, "UnsupportedArchitecture", '"X"'],
    ["fewer kinds than layers", { layer_types: ["full_attention"] }, "Unreadable", "layer_types"],
    ["layers that run several times", { model_type: "iquestloopcoder", loop_num: 2 }, "UnsupportedArchitecture", "loop_num"],
    ["compressed caches", { compress_ratios: [4, 128] }, "UnsupportedArchitecture", "compress_ratios"],
    ["summaries in addition to their keys", { model_type: "step5", sparse_config: { enabled: true } }, "UnsupportedArchitecture", "sparse_config"],
    [
      "an index's compressed keys",
      { model_type: "qwen4_exp_text", indexer_n_heads: 4, indexer_compress_ratio: 4 },
      "UnsupportedArchitecture",
      "indexer_n_heads"
    ],
    ["states of n-gram embeddings", { model_type: "qwen4_exp_text", ple_layer_ids: [2] }, "UnsupportedArchitecture", "ple_layer_ids"],
    ["latents as wide as those of others", { model_type: "dots3_note_text", swa_kv_lora_rank: 1_024 }, "UnsupportedArchitecture", "swa_kv_lora_rank"],
    ["convolutions of their own", { model_type: "inkling_text" }, "UnsupportedArchitecture", "inkling_text"],
    ["an index of unknown size", { model_type: "minimax_m3_text" }, "UnsupportedArchitecture", "sparse_attention_config"],
    ["a recurrent state of unknown size", { layer_types: Array(12).fill("mamba") }, "UnsupportedArchitecture", "state"],
    ["a window without length", { layer_types: Array(12).fill("sliding_attention") }, "UnsupportedArchitecture", "sliding window"],
    ["a latent that is not a number", { kv_lora_rank: "512", qk_rope_head_dim: 64 }, "Unreadable", "kv_lora_rank"],
    ["an unlimited number of layers", { num_hidden_layers: 1e12 }, "Unreadable", "num_hidden_layers"],
    ["heads that are not a number", { num_attention_heads: Number.NaN }, "Unreadable", "num_attention_heads"]
  ] as const)("with %s are refused by name", (_, config, tag, word) => {
    const problem = Result.getOrThrow(Result.flip(parseModelConfig({ ...base, ...config }, "BF16")))
    assert.strictEqual(problem._tag, tag)
    assert.include(problem.reason, word)
  })

  const layout = { gpuCount: 1, valueBytes: 2, stateValueBytes: 2, blockTokens: 16, stepTokens: 2_496, latentAlignment: 1, statesPerSequence: 1 }
  it("match the engine's report for a model with wide full layers and many narrow ones: 84.68 GiB for 14.92 sequences of 262,144 tokens", () => {
    const gemma = {
      ...base,
      model_type: "gemma4_text",
      hidden_size: 2816,
      num_attention_heads: 16,
      num_hidden_layers: 30,
      head_dim: 256,
      global_head_dim: 512,
      num_global_key_value_heads: 2,
      sliding_window: 1024,
      max_position_embeddings: 262_144,
      layer_types: [...Array(30)].map((_, index) => ((index + 1) % 6 === 0 ? "full_attention" : "sliding_attention"))
    }
    assert.closeTo((84.68 * 2 ** 30) / sequenceBytes(parse(gemma), layout, 262_144), 14.92, 0.005)
  })

  it("keep one state per sequence of any length", () => {
    const mamba = {
      ...base,
      model_type: "nemotron_h",
      hybrid_override_pattern: "M".repeat(12),
      mamba_num_heads: 64,
      mamba_head_dim: 64,
      ssm_state_size: 128,
      n_groups: 8,
      conv_kernel: 4
    }
    const config = parse(mamba)
    // (64 x 64 + 2 x 8 x 128) x 3 values of 2 bytes, and 64 x 64 x 128 of 4.
    const state = 6_144 * 3 * 2 + 64 * 64 * 128 * 4
    assert.strictEqual(sequenceBytes(config, layout, 100), 12 * state)
    assert.strictEqual(sequenceBytes(config, layout, 100_000), 12 * state)
    assert.strictEqual(kvBytesPerToken(config, layout), 0)
  })

  it("are all recurrent in families without attention, which keep one state per sequence, divided by the GPUs", () => {
    const pure = { architectures: ["AnyForCausalLM"], vocab_size: 65_024, hidden_size: 4_096, num_hidden_layers: 64, state_size: 16, conv_kernel: 4 }
    // In some families `expand` is not related to the width.
    const falcon = parse({ ...pure, model_type: "falcon_mamba", intermediate_size: 8_192, expand: 16 })
    assert.deepStrictEqual([falcon.num_attention_heads, falcon.native_context], [8_192, 2_048])
    const state = (8_192 * 3 + 8_192 * 16) * 2
    assert.strictEqual(sequenceBytes(falcon, layout, 2_048), 64 * state)
    assert.strictEqual(sequenceBytes(falcon, { ...layout, gpuCount: 4, statesPerSequence: 2 }, 2_048), (64 * 2 * state) / 4)
    const codestral = parse({ ...pure, model_type: "mamba2", num_heads: 128, head_dim: 64, state_size: 128, n_groups: 8, expand: 2 })
    assert.strictEqual(codestral.num_attention_heads, 128)
    assert.strictEqual(sequenceBytes(codestral, layout, 100), 64 * ((8_192 + 2 * 8 * 128) * 3 + 128 * 64 * 128) * 2)
    assert.strictEqual(kvBytesPerToken(codestral, layout), 0)
  })

  it("with sparse attention cache 656 bytes for a latent of 576 values in an 8-bit cache, plus the index", () => {
    const sparse = parse({ ...base, model_type: "deepseek_v32", kv_lora_rank: 512, qk_rope_head_dim: 64, index_head_dim: 128, num_hidden_layers: 61 })
    assert.strictEqual(kvBytesPerToken(sparse, { ...layout, valueBytes: 1 }), 61 * (656 + 132))
    assert.strictEqual(kvBytesPerToken(sparse, layout), 61 * (576 * 2 + 132))
  })

  it("of MiniCPM3 cache a key with its positions and a padded value for each head, as in vLLM", () => {
    const sizes = { hidden_size: 2560, num_hidden_layers: 62, num_attention_heads: 40, num_key_value_heads: 40 }
    const latent = { q_lora_rank: 768, kv_lora_rank: 256, qk_nope_head_dim: 64, qk_rope_head_dim: 32 }
    const minicpm = parse({ ...base, ...sizes, ...latent, model_type: "minicpm3" })
    assert.strictEqual(kvBytesPerToken(minicpm, layout), 62 * 40 * (96 + 96) * 2)
    // As in SGLang.
    assert.strictEqual(kvBytesPerToken(inLatents(minicpm), layout), 62 * (256 + 32) * 2)
  })

  it("of MiniMax-M3 cache an index key in 57 of 60 layers, replicated on each GPU and in 16 bits for any cache type", () => {
    const layers = [...Array(3).fill(0), ...Array(57).fill(1)]
    const sparse_attention_config = { sparse_index_dim: 128, sparse_attention_freq: layers, sparse_disable_index_value: layers }
    const m3 = { ...base, model_type: "minimax_m3_text", num_hidden_layers: 60, num_attention_heads: 64, num_key_value_heads: 4, head_dim: 128 }
    const config = parse({ ...m3, sparse_attention_config })
    assert.strictEqual(kvBytesPerToken(config, layout), 60 * 4 * 256 * 2 + 57 * 128 * 2)
    assert.strictEqual(kvBytesPerToken(config, { ...layout, gpuCount: 8, valueBytes: 1 }), 60 * 256 + 57 * 128 * 2)
    // Also a value, unless it is switched off.
    const valued = parse({ ...m3, sparse_attention_config: { ...sparse_attention_config, sparse_disable_index_value: undefined } })
    assert.strictEqual(kvBytesPerToken(valued, layout), 60 * 4 * 256 * 2 + 57 * 128 * 4)
  })

  it("may list a size for each layer, of which the largest counts", () => {
    const experts = { num_experts: 64, moe_topk: [8, 8, 6], moe_intermediate_size: [3_072, 3_072, 1_536] }
    const { shape } = parse({ ...base, model_type: "hunyuan_v1_moe", intermediate_size: [8_192, 16_384, 8_192], ...experts })
    assert.deepStrictEqual([shape?.intermediate_size, shape?.experts], [16_384, { count: 64, active: 8, intermediate_size: 3_072 }])
    // As in Ernie 4.5 VL, which has experts for text and for images.
    const two = parse({ ...base, model_type: "ernie4_5_moe_vl", moe_num_experts: [64, 64], moe_k: 6, moe_intermediate_size: [1_536, 512] })
    assert.deepStrictEqual(two.shape?.experts, { count: 64, active: 6, intermediate_size: 1_536 })
  })

  it("are refused if each has another size, for any number of layers", () => {
    const heads = Array.from({ length: 10_000 }, (_, layer) => layer + 1)
    const refused = parseModelConfig({ ...base, num_attention_heads: 1_000, num_hidden_layers: 10_000, num_key_value_heads: heads }, "BF16")
    assert.match(Result.isFailure(refused) ? refused.failure.reason : "", /more than 200 kinds and sizes/)
  })

  const Hostile = Schema.Union([
    Schema.Int,
    Schema.Finite,
    Schema.String,
    Schema.Boolean,
    Schema.Null,
    Schema.Array(Schema.Int),
    Schema.Record(Schema.String, Schema.Int)
  ])
  const Keys = Schema.Literals([
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "sliding_window",
    "layer_types",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "v_head_dim",
    "num_experts",
    "num_experts_per_tok",
    "intermediate_size",
    "moe_intermediate_size",
    "vision_config",
    "text_config",
    "quantization_config",
    "rope_scaling",
    "rope_theta",
    "hybrid_override_pattern",
    "attention_chunk_size",
    "no_rope_layers",
    "block_configs",
    "linear_attn_config",
    "mamba_n_heads",
    "mamba_d_state",
    "full_attention_interval",
    "attn_layer_period",
    "num_kv_shared_layers",
    "index_head_dim",
    "dtype",
    "architectures",
    "model_type"
  ])
  it.prop(
    "of a hostile configuration are refused or yield finite figures",
    [Schema.Array(Schema.Tuple([Keys, Hostile])).check(Schema.isMaxLength(6))],
    ([changes]) => {
      const parsed = parseModelConfig({ ...base, ...Object.fromEntries(changes) }, "BF16")
      if (Result.isFailure(parsed)) return parsed.failure.reason.length > 0
      const bytes = sequenceBytes(parsed.success, layout, parsed.success.native_context)
      return Number.isFinite(bytes) && bytes >= 0
    }
  )
})
