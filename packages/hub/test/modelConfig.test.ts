import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { textTypes } from "../src/generated/configurationDefaults.ts"
import { asksForCode, chatTemplateOf, parseModelConfig } from "../src/modelConfig.ts"

const llama = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 4096,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  max_position_embeddings: 8192,
  vocab_size: 128_256,
  torch_dtype: "bfloat16"
}
const parse = (config: Readonly<Record<string, unknown>>, storedType = "BF16") => Result.getOrThrow(parseModelConfig(config, storedType))
const refused = (config: Readonly<Record<string, unknown>>) => Result.getOrThrow(Result.flip(parseModelConfig(config, "BF16")))

describe("config.json", () => {
  it.each([
    ["the head's size from the hidden size", llama, { head_dim: 128, num_kv_heads: 8 }],
    ["the head's size as stated", { ...llama, head_dim: 96 }, { head_dim: 96 }],
    ["one key-value head for multi-query attention", { ...llama, num_key_value_heads: null, multi_query: true }, { num_kv_heads: 1 }],
    [
      "one for Falcon's first architecture, regardless of the configuration",
      { ...llama, model_type: "falcon", num_kv_heads: 32, num_key_value_heads: undefined, multi_query: true, new_decoder_architecture: false },
      { num_kv_heads: 1 }
    ],
    [
      "as many as stated for Falcon's second architecture",
      { ...llama, model_type: "falcon", num_kv_heads: 8, num_key_value_heads: undefined, multi_query: true, new_decoder_architecture: true },
      { num_kv_heads: 8 }
    ],
    [
      "LongCat's layers, each with two of the attentions that are also counted",
      { ...llama, model_type: "longcat_flash", num_hidden_layers: 56, num_layers: 28, kv_lora_rank: 512, qk_rope_head_dim: 64 },
      { num_layers: 28 }
    ],
    [
      "the number of listed layers, if they are not counted",
      { ...llama, model_type: "nemotron_h", num_hidden_layers: undefined, layers_block_type: ["mlp", "moe", "full_attention"] },
      { num_layers: 3 }
    ],
    ["as many key-value heads as heads if none are stated", { ...llama, num_key_value_heads: undefined }, { num_kv_heads: 32 }],
    ["the smallest of several context limits", { ...llama, model_max_length: 4096, seq_length: 16_384 }, { native_context: 4096 }],
    ["the smallest limit, including the less common names that the engines read", { ...llama, max_target_positions: 448 }, { native_context: 448 }],
    [
      "the engines' default context if none is stated, as in Falcon-7B",
      {
        architectures: ["FalconForCausalLM"],
        model_type: "falcon",
        hidden_size: 4544,
        num_hidden_layers: 32,
        num_attention_heads: 71,
        multi_query: true,
        parallel_attn: true,
        new_decoder_architecture: false,
        alibi: false,
        vocab_size: 65_024
      },
      { native_context: 2_048, num_kv_heads: 1, head_dim: 64 }
    ],
    ["a sliding window", { ...llama, sliding_window: 1024 }, { sliding_window: 1024 }],
    ["no sliding window if it is switched off", { ...llama, sliding_window: 1024, use_sliding_window: false }, { sliding_window: null }],
    ["the type under its newer name", { ...llama, torch_dtype: undefined, dtype: "float16" }, { dtype: "float16" }],
    ["the stored type if the configuration names none", { ...llama, torch_dtype: null }, { dtype: "bfloat16" }],
    ["the method of quantization", { ...llama, quantization_config: { quant_method: "fp8" } }, { quantization: "fp8" }],
    [
      "a language model within a multimodal one",
      { architectures: ["LlavaForConditionalGeneration"], model_type: "llava", text_config: { ...llama, architectures: undefined } },
      { architecture: "LlavaForConditionalGeneration", model_type: "llava", num_layers: 32 }
    ],
    [
      "values that a nested configuration leaves to its class, as Transformers writes Qwen3-VL 4B",
      {
        architectures: ["Qwen3VLForConditionalGeneration"],
        model_type: "qwen3_vl",
        text_config: {
          model_type: "qwen3_vl_text",
          hidden_size: 2560,
          intermediate_size: 9728,
          num_hidden_layers: 36,
          num_key_value_heads: 8,
          max_position_embeddings: 262_144
        }
      },
      { num_layers: 36, num_attention_heads: 32, num_kv_heads: 8, head_dim: 128, vocab_size: 151_936, native_context: 262_144 }
    ],
    [
      "the class of a nested configuration without a type, from its wrapper",
      { architectures: ["InternVLForConditionalGeneration"], model_type: "internvl", text_config: { num_hidden_layers: 28, num_key_value_heads: 4 } },
      { num_layers: 28, hidden_size: 4096, num_attention_heads: 32, num_kv_heads: 4, vocab_size: 151_936, native_context: 32_768 }
    ],
    [
      "an explicit null in a nested configuration as absent, as its class reads it",
      { architectures: ["AyaVisionForConditionalGeneration"], model_type: "aya_vision", text_config: { num_key_value_heads: null, sliding_window: null } },
      { num_attention_heads: 64, num_kv_heads: 64, sliding_window: null }
    ],
    [
      "the names of GPT-2",
      { architectures: ["GPT2LMHeadModel"], model_type: "gpt2", n_layer: 12, n_embd: 768, n_head: 12, n_positions: 1024, vocab_size: 50_257 },
      { num_layers: 12, hidden_size: 768, num_attention_heads: 12, num_kv_heads: 12, head_dim: 64, native_context: 1024 }
    ],
    [
      "the dictionaries of DBRX",
      {
        architectures: ["DbrxForCausalLM"],
        model_type: "dbrx",
        d_model: 6144,
        n_heads: 48,
        n_layers: 40,
        max_seq_len: 32_768,
        vocab_size: 100_352,
        attn_config: { clip_qkv: 8, kv_n_heads: 8, rope_theta: 500_000 },
        ffn_config: { ffn_hidden_size: 10_752, moe_num_experts: 16, moe_top_k: 4 }
      },
      { num_layers: 40, num_attention_heads: 48, num_kv_heads: 8, head_dim: 128, native_context: 32_768 }
    ]
  ] as const)("gives %s", (_, config, expected) => {
    assert.deepInclude(parse(config), expected)
  })

  it("counts the experts in a nested configuration under any class's name", () => {
    const text_config = { model_type: "mixtral", num_experts: 4, num_experts_per_tok: 1 }
    const nested = parse({ architectures: ["AnyForConditionalGeneration"], model_type: "llava", text_config })
    assert.deepInclude(nested.shape?.experts, { count: 4, active: 1 })
    const silent = parse({ architectures: ["AnyForConditionalGeneration"], model_type: "llava", text_config: { model_type: "mixtral" } })
    assert.deepInclude(silent.shape?.experts, { count: 8, active: 2 })
  })

  it("reads every text configuration of Transformers that leaves all values to its class, or refuses it for its kinds of layers", () => {
    const unread = Object.keys(textTypes).flatMap((model_type) => {
      const read = parseModelConfig({ architectures: ["AnyForConditionalGeneration"], model_type, text_config: {} }, "BF16")
      return Result.isFailure(read) && /does not state (the number|its hidden|the size)/.test(read.failure.reason) ? [model_type] : []
    })
    // Encoder-decoders, and a class that computes its layers from a pattern.
    assert.deepStrictEqual(unread, ["florence2", "kosmos-2", "kosmos-2.5", "nemo_speechlm", "nemotron_h_omni", "pp_formulanet"])
    assert.isAbove(Object.keys(textTypes).length, 100)
  })

  it.each([
    ["layers in words", { ...llama, num_hidden_layers: "32" }, "Unreadable"],
    ["half a head", { ...llama, num_attention_heads: 0.5 }, "Unreadable"],
    ["more heads than width", { ...llama, num_attention_heads: 5000 }, "Unreadable"],
    ["an unlimited context", { ...llama, max_position_embeddings: 1e30 }, "Unreadable"],
    ["a quantization that is not a name", { ...llama, quantization_config: { quant_method: "x y" } }, "Unreadable"],
    ["no vocabulary", { ...llama, vocab_size: undefined }, "UnsupportedArchitecture"],
    ["no architecture", { ...llama, architectures: [] }, "UnsupportedArchitecture"]
  ] as const)("is refused with %s", (_, config, tag) => {
    assert.strictEqual(refused(config)._tag, tag)
  })

  it("is refused with heads that do not divide the hidden size if its class requires it, even if the head size is stated", () => {
    const reason = "config.json gives 30 attention heads, which do not divide the hidden size of 4096: no engine starts with it."
    const uneven = { ...llama, num_attention_heads: 30, num_key_value_heads: 6 }
    for (const config of [uneven, { ...uneven, head_dim: 128 }, { architectures: ["LlavaForConditionalGeneration"], model_type: "llava", text_config: uneven }])
      assert.deepInclude(refused(config), { _tag: "Unreadable", reason })
    // Qwen3's does not.
    assert.deepInclude(parse({ ...uneven, model_type: "qwen3", head_dim: 128 }), { num_attention_heads: 30, head_dim: 128 })
  })

  it("is refused with an odd head size if positions rotate the whole head", () => {
    const reason =
      "config.json gives attention heads of 65 values, an odd number: rotary position embeddings need an even number, and no engine starts with it."
    const odd = { ...llama, head_dim: 65 }
    for (const config of [odd, { ...llama, hidden_size: 65 * 32 }, { ...odd, model_type: "qwen3" }, { ...odd, rope_parameters: { rope_theta: 1e6 } }])
      assert.deepInclude(refused(config), { _tag: "Unreadable", reason })
    // Models that rotate a part of each head, models with a rule of their own, and the smallest test models.
    for (const config of [
      { ...odd, partial_rotary_factor: 0.5 },
      { ...odd, rope_parameters: { full_attention: { partial_rotary_factor: 0.5 } } },
      { ...odd, model_type: "glm4" },
      { ...llama, head_dim: 3 }
    ])
      assert.strictEqual(parse(config).head_dim % 2, 1)
  })

  it.each([
    ["rms_norm_eps", "1e-5", "a number"],
    ["layer_norm_epsilon", [1e-5], "a number"],
    ["tie_word_embeddings", "false", "true or false"],
    ["attention_bias", 0, "true or false"],
    ["hidden_act", { name: "silu" }, "a string"]
  ])("is refused with a %s of another type, which fails every engine's start: %j", (name, value, what) => {
    assert.deepInclude(refused({ ...llama, [name]: value }), { _tag: "Unreadable", reason: `config.json has an invalid value for ${name}: expected ${what}.` })
    assert.isTrue(Result.isSuccess(parseModelConfig({ ...llama, [name]: null }, "BF16")))
  })
})

describe("the type of a model's values", () => {
  const quantized = { quantization_config: { quant_method: "awq", bits: 4 } }
  it.each([
    ["is the stored type if the configuration names an integer type", { torch_dtype: "int8" }, "BF16", "bfloat16"],
    ["is the stored type if the configuration names none", { torch_dtype: "auto" }, "F16", "float16"],
    ["has 32 bits if the values do, whatever the configuration names", { torch_dtype: "bfloat16" }, "F32", "float32"],
    ["is the configured 16-bit type, because engines load the values as such", { torch_dtype: "float16" }, "BF16", "float16"],
    ["is the configured type if the weights are quantized", { ...quantized, torch_dtype: "float16" }, "I32", "float16"],
    ["is the configured type, even with the name of its library", { torch_dtype: "torch.float16" }, "F16", "float16"]
  ])("%s", (_, configured, stored, expected) => {
    assert.strictEqual(parse({ ...llama, ...configured }, stored).dtype, expected)
  })
})

describe("the rotated part of a head", () => {
  it.each([
    [{ partial_rotary_factor: 0.5 }, 0.5],
    [{ rope_parameters: { rope_theta: 10_000, partial_rotary_factor: 0.25 } }, 0.25],
    [{ partial_rotary_factor: 1 }, undefined],
    [{}, undefined]
  ])("is reported if it is not the whole head: %j", (config, expected) => {
    assert.strictEqual(parse({ ...llama, ...config }).computation?.partial_rotary_factor, expected)
  })
})

describe("a chat template", () => {
  it.each([
    ["text", "{{ a }}", "{{ a }}"],
    [
      "several by name",
      [
        { name: "tool_use", template: "t" },
        { name: "default", template: "d" }
      ],
      "d"
    ],
    ["one without the name default, which counts as none", [{ name: "rag", template: "r" }], null],
    ["nothing", undefined, null],
    ["empty, which counts as none", "", null],
    ["empty under its name, which counts as none", [{ name: "default", template: " \n" }], null],
    ["a number", 1, null]
  ])("may be %s", (_, chat_template, expected) => {
    assert.strictEqual(chatTemplateOf({ chat_template }), expected)
  })
})

describe("auto_map", () => {
  it("is found at any depth, and not if only a value has that name", () => {
    assert.isTrue(asksForCode({ a: [{ b: { auto_map: {} } }] }))
    assert.isFalse(asksForCode({ a: ["auto_map", { b: "auto_map" }], auto_map: null }))
  })
})
