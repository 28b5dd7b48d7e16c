import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { parseModelConfig } from "../src/modelConfig.ts"
import { countParameters } from "../src/parameters.ts"
import { weightParts, withTensors } from "../src/weightParts.ts"

const base = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 4_096,
  num_attention_heads: 32,
  num_hidden_layers: 2,
  max_position_embeddings: 8_192,
  vocab_size: 32_000
}
const parse = (quantization_config: unknown, more = {}) => {
  const { quantization, quantization_scheme } = Result.getOrThrow(parseModelConfig({ ...base, quantization_config, ...more }, "BF16"))
  return { method: quantization, ...quantization_scheme }
}
const groups = (weights: object, input_activations: object | null, more = {}) => ({
  quant_method: "compressed-tensors",
  config_groups: { group_0: { targets: ["Linear"], weights, input_activations } },
  ...more
})

describe("the quantization of a checkpoint", () => {
  it.each([
    ["nothing", undefined, { method: "none" }],
    [
      "AWQ",
      { quant_method: "awq", bits: 4, group_size: 128, version: "gemm", zero_point: true },
      { method: "awq", bits: 4, group_size: 128, symmetric: false, format: "gemm" }
    ],
    [
      "GPTQ",
      { quant_method: "gptq", bits: 8, group_size: -1, sym: true, desc_act: false },
      { method: "gptq", bits: 8, group_size: -1, symmetric: true, desc_act: false }
    ],
    [
      "compressed-tensors of 4-bit weights",
      groups({ num_bits: 4, type: "int", group_size: 128, symmetric: true, strategy: "group" }, null, { format: "pack-quantized" }),
      { method: "compressed-tensors", bits: 4, floating: false, group_size: 128, symmetric: true, format: "pack-quantized" }
    ],
    [
      "compressed-tensors of INT8",
      groups({ num_bits: 8, type: "int", symmetric: true }, { num_bits: 8, type: "int", dynamic: true }, { format: "int-quantized" }),
      {
        method: "compressed-tensors",
        bits: 8,
        activation_bits: 8,
        floating: false,
        activation_floating: false,
        symmetric: true,
        format: "int-quantized"
      }
    ],
    ["FP8 in blocks", { quant_method: "fp8", fmt: "e4m3", weight_block_size: [128, 128] }, { method: "fp8", group_size: 128, format: "e4m3" }],
    ["MXFP4", { quant_method: "mxfp4", modules_to_not_convert: [] }, { method: "mxfp4" }],
    [
      "NVFP4 of ModelOpt with an 8-bit cache",
      { quant_method: "modelopt", quant_algo: "NVFP4", kv_cache_scheme: { dynamic: false, num_bits: 8, type: "float" } },
      { method: "modelopt", cache_bits: 8, format: "NVFP4" }
    ],
    [
      "ModelOpt in a file of its own",
      { producer: { name: "modelopt" }, quantization: { quant_algo: "FP8", kv_cache_quant_algo: "FP8" } },
      { method: "modelopt", cache_bits: 8, format: "FP8" }
    ],
    ["bitsandbytes", { load_in_4bit: true, bnb_4bit_quant_type: "nf4", bnb_4bit_use_double_quant: true }, { method: "bitsandbytes", bits: 4, format: "nf4" }],
    ["a value that is not a number", { quant_method: "awq", bits: "4", group_size: {}, zero_point: 1 }, { method: "awq" }],
    ["a value outside of every scheme", { quant_method: "gptq", bits: 1e9, group_size: 1e12, sym: "yes" }, { method: "gptq" }],
    ["no known value", { some: "thing" }, { method: "unknown" }]
  ] as const)("%s", (_, raw, expected) => assert.deepStrictEqual(parse(raw), expected))

  it("is found in the layers' own configuration, and under its older name", () => {
    assert.deepStrictEqual(parse(undefined, { compression_config: groups({ num_bits: 8, type: "float" }, null) }), {
      method: "compressed-tensors",
      bits: 8,
      floating: true
    })
    const nested = { architectures: ["AnyForConditionalGeneration"], text_config: { ...base, quantization_config: { quant_method: "awq", bits: 4 } } }
    assert.deepInclude(Result.getOrThrow(parseModelConfig(nested, "F16")), { quantization: "awq", quantization_scheme: { bits: 4 } })
  })

  it("is refused if it names so many modules that comparing them with the tensors would take minutes, and not before", () => {
    const tensors = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ name: `model.layers.${at}.mlp.weight`, dtype: "I32", shape: [4, 8], count: 1, bytes: 128 }))
    const counted = (count: number, ignore: ReadonlyArray<string>) =>
      countParameters(tensors(count), { quantization_config: groups({ num_bits: 4 }, null, { ignore }) })
    const names = (count: number, name: (at: number) => string) => Array.from({ length: count }, (_, at) => name(at))
    for (const ignore of [names(50_000, (at) => `re:.*x${at}`), names(50_000, (at) => `model.x${at}`), [`re:${".*x".repeat(100_000)}`]]) {
      const refused = counted(2_000, ignore)
      assert.match(Result.isFailure(refused) ? refused.failure.reason : "", /more modules in its quantization_config/)
    }
    // From the longest real lists.
    assert.strictEqual(
      Result.getOrThrow(
        counted(
          100,
          names(2_000, (at) => `model.layers.${at + 50}.mlp`)
        )
      ),
      100 * 4 * 8
    )
  })
})

describe("weights of an unknown type", () => {
  const config = Result.getOrThrow(parseModelConfig({ ...base, torch_dtype: "bfloat16" }, "F8_E4M3"))
  const group = (dtype: string, bytes: number) => ({ name: "model.layers.0.mlp.up_proj.weight", dtype, shape: [bytes, 1], count: 1, bytes })

  it("of 8 bits are loaded as 16-bit values if nothing is quantized", () => {
    assert.strictEqual(weightParts([group("F8_E4M3", 1_000), group("BF16", 500)], config).float8, 1_000)
    assert.isUndefined(weightParts([group("F8_E4M3", 1_000)], { ...config, quantization: "fp8" }).float8)
  })

  it("in one tensor for all experts of a layer are counted once for the layer, without their scales", () => {
    const fused = (name: string, count: number, bytes: number, shape = [32, 8, 8]) => ({
      name: `model.layers.0.mlp.experts.${name}`,
      dtype: "BF16",
      shape,
      count,
      bytes
    })
    const down = fused("down_proj", 2, 9_000)
    assert.strictEqual(weightParts([fused("gate_up_proj", 2, 8_000), down, fused("gate_up_proj_bias", 2, 64, [32, 8])], config).fused_experts, 4_000)
    assert.strictEqual(weightParts([fused("gate_up_proj_blocks", 1, 5_000), fused("gate_up_proj_scales", 1, 6_000)], config).fused_experts, 5_000)
    assert.isUndefined(weightParts([down, { ...fused("0.gate_up_proj", 1, 5_000), shape: [8, 8] }], config).fused_experts)
  })

  it("of 8 or 64 bits are reported to engines that do not support them", () => {
    assert.deepStrictEqual(withTensors(config, [group("F8_E4M3", 1), group("F64", 8), group("BF16", 2)]).computation?.types, ["F64", "F8_E4M3"])
    assert.deepStrictEqual(withTensors(config, [group("BF16", 2), group("F32", 4)]), config)
    assert.isTrue(withTensors(config, [{ ...group("BF16", 2), name: "layers.0.mlp.up_proj.weight" }]).bare_names)
  })
})
