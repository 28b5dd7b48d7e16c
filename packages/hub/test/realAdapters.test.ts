import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { parseAdapterConfig } from "../src/adapterConfig.ts"
import { adapterTensors, checkAdapter } from "../src/adapterTensors.ts"
import { BaseModules } from "../src/BaseModules.ts"
import { parseJsonObject } from "../src/boundedJson.ts"
import { parseModelConfig } from "../src/modelConfig.ts"
import { scanHeader } from "../src/safetensors.ts"
import { feed } from "./feed.ts"

type Module = readonly [name: string, output: number, input: number]

/** The linear modules of a layer. */
const mistral: ReadonlyArray<Module> = [
  ["self_attn.q_proj", 4_096, 4_096],
  ["self_attn.k_proj", 1_024, 4_096],
  ["self_attn.v_proj", 1_024, 4_096],
  ["self_attn.o_proj", 4_096, 4_096],
  ["mlp.gate_proj", 14_336, 4_096],
  ["mlp.up_proj", 14_336, 4_096],
  ["mlp.down_proj", 4_096, 14_336]
]
const qwen: ReadonlyArray<Module> = [
  ["self_attn.q_proj", 3_584, 3_584],
  ["self_attn.k_proj", 512, 3_584],
  ["self_attn.v_proj", 512, 3_584],
  ["self_attn.o_proj", 3_584, 3_584],
  ["mlp.gate_proj", 18_944, 3_584],
  ["mlp.up_proj", 18_944, 3_584],
  ["mlp.down_proj", 3_584, 18_944]
]
const mistralConfig = {
  architectures: ["MistralForCausalLM"],
  model_type: "mistral",
  hidden_size: 4_096,
  intermediate_size: 14_336,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  vocab_size: 32_000,
  max_position_embeddings: 32_768
}
const qwenConfig = {
  architectures: ["Qwen2ForCausalLM"],
  model_type: "qwen2",
  hidden_size: 3_584,
  intermediate_size: 18_944,
  num_hidden_layers: 28,
  num_attention_heads: 28,
  num_key_value_heads: 4,
  vocab_size: 152_064,
  max_position_embeddings: 32_768
}

const all = mistral.map(([name]) => name.slice(name.indexOf(".") + 1))
/** The form in which older versions of PEFT write it. */
const written = { auto_mapping: null, bias: "none", fan_in_fan_out: false, inference_mode: true, init_lora_weights: true, layers_pattern: null }

/**
 * Public adapters: `adapter_config.json` and the size of `adapter_model.safetensors` at the given commit (from its Git
 * LFS pointer), and the number of parameters by rank and modules: the rank times the widths of both sides, for each
 * module of each layer.
 */
const rows = [
  {
    adapter: "mogaio/Mistral-2x2_8-LoRA",
    source: "commit 04dd68b0a198b61ac9a4a6897a771e00b08bfa83",
    base: { repo: "mistralai/Mistral-7B-v0.1", config: mistralConfig, modules: mistral, layers: 32 },
    config: { ...written, peft_type: "LORA", task_type: "CAUSAL_LM", r: 8, lora_alpha: 32, lora_dropout: 0.1, target_modules: all },
    dtype: "F16",
    // 32*8*(2*(4096+4096) + 2*(4096+1024) + 3*(4096+14336))
    parameters: 20_971_520,
    fileBytes: 42_002_584
  },
  {
    adapter: "BobaZooba/AntModel-7B-XLLM-Demo-LoRA",
    source: "commit b3e6069e3831053f69318db910e9f7a97afc5733",
    base: { repo: "mistralai/Mistral-7B-v0.1", config: mistralConfig, modules: mistral, layers: 32 },
    config: { ...written, peft_type: "LORA", task_type: "CAUSAL_LM", r: 8, lora_alpha: 32, lora_dropout: 0.1, rank_pattern: {}, target_modules: all },
    dtype: "F32",
    parameters: 20_971_520,
    fileBytes: 83_945_296
  },
  {
    adapter: "VerbACxSS/sempl-it-nominalizations-bnb",
    source: "commit 17536e5eebc3e68e746ee6e97c208daeb54a6855",
    base: { repo: "Qwen/Qwen2.5-7B-Instruct", config: qwenConfig, modules: qwen, layers: 28 },
    config: { ...written, peft_type: "LORA", task_type: "CAUSAL_LM", r: 64, lora_alpha: 16, lora_dropout: 0.05, target_modules: ["v_proj", "q_proj"] },
    dtype: "F32",
    // 28*64*((3584+3584) + (3584+512))
    parameters: 20_185_088,
    fileBytes: 80_755_416
  }
] as const

const bytesOf: Readonly<Record<string, number>> = { BF16: 2, F16: 2, F32: 4 }

/** A header with these tensors, one after the other. */
const headerOf = (tensors: ReadonlyArray<readonly [name: string, dtype: string, shape: readonly [number, number]]>) => {
  let end = 0
  const entries = tensors.map(([name, dtype, shape]) => {
    const begin = end
    end += shape[0] * shape[1] * (bytesOf[dtype] ?? Number.NaN)
    return `${JSON.stringify(name)}:${JSON.stringify({ dtype, shape, data_offsets: [begin, end] })}`
  })
  return { text: `{${entries.join(",")}}`, bytes: end }
}

const layersOf = <A>(count: number, of: (layer: number) => ReadonlyArray<A>) => Array.from({ length: count }, (_, layer) => of(layer)).flat()

describe("layers_to_transform", () => {
  it("is read as in every version of PEFT if a module's name has several numbers", () => {
    const module = "model.layers.3.mlp.experts.5.up_proj"
    const config = { ...written, peft_type: "LORA", r: 1, lora_alpha: 1, target_modules: ["up_proj"] }
    const tensors = [
      { name: `base_model.model.${module}.lora_A.weight`, dtype: "F32", shape: [1, 4_096], from: 0, to: 16_384 },
      { name: `base_model.model.${module}.lora_B.weight`, dtype: "F32", shape: [14_336, 1], from: 16_384, to: 73_728 }
    ]
    const complete = headerOf([[`${module}.weight`, "BF16", [14_336, 4_096]]])
    const { groups } = Result.getOrThrow(feed(scanHeader(complete.bytes, "model.safetensors"), new TextEncoder().encode(complete.text)))
    const base = { repo: "a/b", config: Result.getOrThrow(parseModelConfig(mistralConfig, "BF16")), modules: new BaseModules(groups.values()) }
    const takes = (changed: object) => Result.isSuccess(checkAdapter(Result.getOrThrow(parseAdapterConfig({ ...config, ...changed })), tensors, base))
    assert.deepStrictEqual(
      [[3], [5], [4], 3, 4].map((layers_to_transform) => takes({ layers_to_transform })),
      [true, true, false, true, false]
    )
    assert.deepStrictEqual(
      [[3], [5]].map((layers_to_transform) => takes({ layers_to_transform, layers_pattern: "layers" })),
      [true, false]
    )
    // A full module name selects a module of any layer.
    assert.isTrue(takes({ layers_to_transform: [4], target_modules: [module] }))
  })
})

describe("public adapters", () => {
  for (const { adapter, base, config, dtype, fileBytes, parameters, source } of rows) {
    it(`${adapter}: rank, modules and bytes match its file (${source})`, () => {
      const { layers, modules } = base
      const complete = headerOf(
        layersOf(layers, (layer) => modules.map(([name, output, input]) => [`model.layers.${layer}.${name}.weight`, "BF16", [output, input]]))
      )
      const { groups } = Result.getOrThrow(feed(scanHeader(complete.bytes, "model.safetensors"), new TextEncoder().encode(complete.text)))
      const targets: ReadonlySet<string> = new Set(config.target_modules)
      const adapted = modules.filter(([name]) => targets.has(name.slice(name.indexOf(".") + 1)))
      const own = headerOf(
        layersOf(layers, (layer) =>
          adapted.flatMap(([name, output, input]) => {
            const module = `base_model.model.model.layers.${layer}.${name}`
            return [
              [`${module}.lora_A.weight`, dtype, [config.r, input]],
              [`${module}.lora_B.weight`, dtype, [output, config.r]]
            ] as const
          })
        )
      )
      const tensors = Result.getOrThrow(adapterTensors(Result.getOrThrow(parseJsonObject(new TextEncoder().encode(own.text), "The header"))))
      const result = Result.getOrThrow(
        checkAdapter(Result.getOrThrow(parseAdapterConfig(config)), tensors, {
          repo: base.repo,
          config: Result.getOrThrow(parseModelConfig(base.config, "BF16")),
          modules: new BaseModules(groups.values())
        })
      )
      assert.deepStrictEqual(result, {
        rank: config.r,
        uniform: true,
        targets: [...targets].sort(),
        unpaired: [],
        experts: false,
        bytes: parameters * (bytesOf[dtype] ?? 0)
      })
      // The file size minus the tensors is the header: names, types, shapes and offsets.
      assert.closeTo((fileBytes - 8 - result.bytes) / tensors.length, 133, 3)
    })
  }
})
