import { assert, describe, it } from "@effect/vitest"
import { ModelConfig, readTemplate } from "@seatrial/domain"
import { Result, Schema } from "effect"
import { parseAdapterConfig } from "../src/adapterConfig.ts"
import { parseJsonObject } from "../src/boundedJson.ts"
import { asksForCode, chatTemplateOf, parseModelConfig } from "../src/modelConfig.ts"
import { headerLength, scanHeader } from "../src/safetensors.ts"
import { scanIndex } from "../src/weightIndex.ts"
import { feed } from "./feed.ts"
import { indexOracle, oracle } from "./headerOracle.ts"
import { mutate, type Random, randomFrom } from "./mutate.ts"

/**
 * `FUZZ_INPUTS=100000 npx vitest run packages/hub/test/fuzz.test.ts` runs more inputs, and `FUZZ_SEED` selects other
 * inputs.
 */
const inputs = Number(process.env.FUZZ_INPUTS ?? 3_000)
const firstSeed = Number(process.env.FUZZ_SEED ?? 1)

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const tensor = (dtype: string, shape: ReadonlyArray<number>, from: number, to: number) => ({ dtype, shape, data_offsets: [from, to] })
const dataBytes = 96
const headers = [
  {
    __metadata__: { format: "pt" },
    "model.embed.weight": tensor("BF16", [8, 4], 0, 64),
    "model.norm.weight": tensor("F32", [4], 64, 80),
    b: tensor("U8", [16], 80, 96)
  },
  { c: tensor("F4", [2, 96], 0, 96), d: tensor("I64", [0], 96, 96) },
  { b: tensor("I8", [48], 48, 96), a: { data_offsets: [0, 48], extra: [1, { x: null }], shape: [6, 8], dtype: "F8_E4M3" } }
].map(encode)

const listed = new Set(["model-1.safetensors", "model-2.safetensors"])
const indexes = [
  { metadata: { total_size: 96 }, weight_map: { "a.0.w": "model-1.safetensors", "a.1.w": "model-1.safetensors", b: "model-2.safetensors" } },
  { weight_map: { a: "model-1.safetensors" }, metadata: {} }
].map(encode)

const llama = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 512,
  vocab_size: 512,
  torch_dtype: "float32",
  rope_scaling: { rope_type: "yarn", factor: 4, original_max_position_embeddings: 128 }
}
const configs = [
  llama,
  { ...llama, architectures: ["MixtralForCausalLM"], model_type: "mixtral", num_local_experts: 8, num_experts_per_tok: 2, sliding_window: 256 },
  {
    architectures: ["Gemma3ForConditionalGeneration"],
    model_type: "gemma3",
    text_config: { ...llama, model_type: "gemma3_text", layer_types: ["sliding_attention", "full_attention"] },
    vision_config: { hidden_size: 32, num_hidden_layers: 2, intermediate_size: 64 }
  },
  {
    ...llama,
    architectures: ["DeepseekV3ForCausalLM"],
    model_type: "deepseek_v3",
    kv_lora_rank: 512,
    q_lora_rank: 1536,
    qk_rope_head_dim: 64,
    qk_nope_head_dim: 128,
    v_head_dim: 128,
    n_routed_experts: 8,
    quantization_config: { quant_method: "fp8", weight_block_size: [128, 128] }
  },
  {
    ...llama,
    architectures: ["NemotronHForCausalLM"],
    model_type: "nemotron_h",
    hybrid_override_pattern: "M-M*",
    num_hidden_layers: 4,
    mamba_num_heads: 4,
    mamba_head_dim: 16,
    ssm_state_size: 16,
    conv_kernel: 4,
    n_groups: 2
  },
  {
    ...llama,
    auto_map: { AutoConfig: "a.B" },
    quantization_config: { quant_method: "compressed-tensors", config_groups: { group_0: { weights: { num_bits: 4 } } }, ignore: ["lm_head"] }
  }
].map(encode)

const adapters = [
  { peft_type: "LORA", task_type: "CAUSAL_LM", r: 8, lora_alpha: 16, target_modules: ["q_proj", "v_proj"], base_model_name_or_path: "odd/base" },
  {
    peft_type: "LORA",
    r: 64,
    lora_alpha: 32.5,
    target_modules: "all-linear",
    use_rslora: true,
    rank_pattern: { "layers.0": 16 },
    alpha_pattern: { "layers.0": 8 },
    init_lora_weights: "gaussian",
    bias: "none",
    modules_to_save: null,
    revision: "main"
  }
].map(encode)

const templates = [
  "{% for m in messages %}{{ '<|im_start|>' + m.role }}{{ m['content'] }}{% endfor %}{# no {{ more }} #}",
  '{%- if tools is defined %}{{ "<tool_call>" }}<think>{% endif %}{% if enable_thinking %}{{ reasoning_effort }}{% endif %}'
].map((text) => new TextEncoder().encode(text))

const isModelConfig = Schema.is(ModelConfig)
/** The message for a caller: a sentence in which the repository's text cannot end a line. */
const isSentence = (reason: string) => assert.match(reason, /^\P{Cc}{10,600}\.$/u)

/** Runs the inputs of one kind. A failure names the seed that reproduces its input. */
const play = (share: number, corpus: ReadonlyArray<Uint8Array>, check: (input: Uint8Array, random: Random) => boolean) => {
  const count = Math.ceil(inputs * share)
  let accepted = 0
  for (let at = 0; at < count; at++) {
    const seed = firstSeed + at
    const random = randomFrom(seed)
    const input = mutate(random.pick(corpus), random)
    try {
      if (check(input, random)) accepted++
    } catch (error) {
      throw new Error(`FUZZ_SEED=${seed}: ${JSON.stringify(Buffer.from(input).toString("latin1"))}`, { cause: error })
    }
  }
  // Both outcomes must occur, or the inputs prove nothing.
  assert.isAbove(accepted, 0)
  assert.isBelow(accepted, count)
}

describe("hostile metadata", () => {
  it("in a header is refused by name, or equals another implementation's result", { timeout: 1_200_000 }, () => {
    play(0.4, headers, (input, random) => {
      const result = feed(scanHeader(dataBytes, "model.safetensors"), input, [random.below(input.length + 1), 1])
      const expected = oracle(input, dataBytes)
      assert.strictEqual(Result.isSuccess(result), expected !== null)
      if (Result.isFailure(result)) isSentence(result.failure.reason)
      else {
        assert.strictEqual(result.success.groups.bytes, dataBytes)
        assert.strictEqual(result.success.names.length, expected?.length)
      }
      return Result.isSuccess(result)
    })
  })

  it("before a header is a length within the file, or refused", { timeout: 1_200_000 }, () => {
    play(0.05, [Uint8Array.from([88, 0, 0, 0, 0, 0, 0, 0]), Uint8Array.from([255, 255, 255, 255, 0, 0, 0, 0])], (input, random) => {
      const size = random.pick([0, 9, 96, 97, 2 ** 33])
      const result = headerLength(input, size, "model.safetensors")
      if (Result.isSuccess(result)) assert.isTrue(result.success >= 2 && result.success + 8 <= size && result.success <= 16 * 2 ** 20)
      else isSentence(result.failure.reason)
      return Result.isSuccess(result)
    })
  })

  it("in an index is refused by name, or equals another implementation's result", { timeout: 1_200_000 }, () => {
    play(0.25, indexes, (input, random) => {
      const result = feed(scanIndex("model.safetensors.index.json", listed), input, [random.below(input.length + 1)])
      const expected = indexOracle(input, listed)
      assert.strictEqual(Result.isSuccess(result), expected !== null)
      if (Result.isFailure(result)) isSentence(result.failure.reason)
      else assert.deepStrictEqual(new Map([...result.success.files].map(([path, { tensors }]) => [path, tensors])), expected)
      return Result.isSuccess(result)
    })
  })

  it("in an adapter's configuration is refused by name, or every resulting value is in its range", { timeout: 1_200_000 }, () => {
    play(0.2, adapters, (input) => {
      const result = Result.flatMap(parseJsonObject(input, "adapter_config.json"), parseAdapterConfig)
      if (Result.isFailure(result)) isSentence(result.failure.reason)
      else {
        const { alpha, alphaPattern, rank, rankPattern, target } = result.success
        for (const each of [rank, ...Object.values(rankPattern)]) assert.isTrue(Number.isInteger(each) && each >= 1 && each <= 8_192)
        for (const each of [alpha, ...Object.values(alphaPattern)]) assert.isTrue(Number.isFinite(each) && each > 0)
        assert.isAbove(target.length, 0)
      }
      return Result.isSuccess(result)
    })
  })

  it("in a chat template yields the same features regardless of comments", { timeout: 1_200_000 }, () => {
    play(0.2, templates, (input) => {
      const text = new TextDecoder().decode(input)
      const facts = readTemplate(text)
      assert.deepStrictEqual(readTemplate(`{# <tool_call> enable_thinking #}${text}`), facts)
      return facts.toolCallFormat !== null
    })
  })

  // Each takes milliseconds to seconds. Quadratic time would take hours.
  it("in a configuration is refused by name, or every resulting value is in its range", { timeout: 1_200_000 }, () => {
    play(0.3, configs, (input) => {
      const parsed = parseJsonObject(input, "config.json")
      if (Result.isFailure(parsed)) {
        isSentence(parsed.failure.reason)
        return false
      }
      asksForCode(parsed.success)
      chatTemplateOf(parsed.success)
      const result = parseModelConfig(parsed.success, "BF16")
      if (Result.isSuccess(result)) assert.isTrue(isModelConfig(result.success), JSON.stringify(result.success))
      else isSentence(result.failure.reason)
      return Result.isSuccess(result)
    })
  })
})
