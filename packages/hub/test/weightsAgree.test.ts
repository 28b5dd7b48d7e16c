import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Json } from "../src/ConfigReader.ts"
import { parseModelConfig } from "../src/modelConfig.ts"
import { TensorGroups } from "../src/TensorGroups.ts"
import { weightsAgree } from "../src/weightsAgree.ts"

const llama = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_size: 128,
  intermediate_size: 320,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 32,
  vocab_size: 512,
  max_position_embeddings: 1_024,
  tie_word_embeddings: false,
  torch_dtype: "bfloat16"
}

type Tensors = Map<string, readonly [dtype: string, shape: ReadonlyArray<number>]>

const tensors = (): Tensors => {
  const all: Tensors = new Map()
  const put = (name: string, ...shape: ReadonlyArray<number>) => all.set(name, ["BF16", shape])
  put("model.embed_tokens.weight", 512, 128)
  put("lm_head.weight", 512, 128)
  put("model.norm.weight", 128)
  for (let layer = 0; layer < 4; layer++) {
    const at = `model.layers.${layer}`
    put(`${at}.input_layernorm.weight`, 128)
    put(`${at}.post_attention_layernorm.weight`, 128)
    put(`${at}.self_attn.q_proj.weight`, 128, 128)
    put(`${at}.self_attn.k_proj.weight`, 64, 128)
    put(`${at}.self_attn.v_proj.weight`, 64, 128)
    put(`${at}.self_attn.o_proj.weight`, 128, 128)
    put(`${at}.mlp.gate_proj.weight`, 320, 128)
    put(`${at}.mlp.up_proj.weight`, 320, 128)
    put(`${at}.mlp.down_proj.weight`, 128, 320)
  }
  return all
}

/** The contradiction between a configuration and these tensors; null if there is none. */
const problemOf = (config: Json, weights: Tensors): string | null => {
  const groups = new TensorGroups()
  groups.addAll([...weights].map(([name, [dtype, shape]]) => ({ name, dtype, shape, count: 1, bytes: 1 })))
  const list = [...groups.values()]
  return Result.match(weightsAgree(Result.getOrThrow(parseModelConfig(config, "BF16")), config, list, list), {
    onSuccess: () => null,
    onFailure: ({ reason }) => reason
  })
}

const changed = (change: (all: Tensors) => void): Tensors => {
  const all = tensors()
  change(all)
  return all
}
const every = (dtype: string): Tensors => new Map([...tensors()].map(([name, [, shape]]) => [name, [dtype, shape]] as const))
const without = (name: string) => changed((all) => assert.isTrue(all.delete(name)))
const shaped = (name: string, ...shape: ReadonlyArray<number>) => changed((all) => all.set(name, ["BF16", shape]))
const typed = (name: string, dtype: string) => changed((all) => all.set(name, [dtype, all.get(name)?.[1] ?? []]))

describe("weights and configuration that contradict each other", () => {
  it("agree for the same model", () => {
    assert.isNull(problemOf(llama, tensors()))
    assert.isNull(problemOf({ ...llama, tie_word_embeddings: true }, without("lm_head.weight")))
  })

  it.each([
    ["twice the width", { hidden_size: 256 }, tensors(), /embed_tokens.weight is \[512, 128\].*\[512, 256\]/],
    ["twice the vocabulary", { vocab_size: 1_024 }, tensors(), /embed_tokens.weight is \[512, 128\].*\[1024, 128\]/],
    ["half the vocabulary", { vocab_size: 256 }, tensors(), /\[256, 128\]/],
    ["twice the size of a head", { head_dim: 64 }, tensors(), /q_proj.weight is \[128, 128\].*\[256, 128\]/],
    ["other key-value heads", { num_key_value_heads: 3 }, tensors(), /k_proj.weight is \[64, 128\].*\[96, 128\]/],
    ["another inner width", { intermediate_size: 640 }, tensors(), /gate_proj.weight is/],
    ["a projection of another form", {}, shaped("model.layers.2.self_attn.q_proj.weight", 256, 64), /layers.2.self_attn.q_proj.weight is \[256, 64\]/],
    ["a norm of another width", {}, shaped("model.layers.3.input_layernorm.weight", 64), /layers.3.input_layernorm.weight is \[64\]/],
    ["a last norm of another width", {}, shaped("model.norm.weight", 64), /model.norm.weight is \[64\]/],
    ["a head of another vocabulary", {}, shaped("lm_head.weight", 500, 128), /lm_head.weight is \[500, 128\]/],
    ["more layers", { num_hidden_layers: 7 }, tensors(), /num_hidden_layers is 7, and there is no tensor of layer 4/],
    ["a missing projection", {}, without("model.layers.1.self_attn.q_proj.weight"), /layer 1 has no self_attn.q_proj/],
    ["a missing feed-forward part", {}, without("model.layers.0.mlp.down_proj.weight"), /layer 0 has no mlp.down_proj/],
    ["no embeddings", {}, without("model.embed_tokens.weight"), /no embeddings/],
    ["no last norm", {}, without("model.norm.weight"), /there is no model\.norm\./],
    ["a layer without its first norm", {}, without("model.layers.1.input_layernorm.weight"), /layer 1 has no input_layernorm\./],
    ["a layer without its second norm", {}, without("model.layers.3.post_attention_layernorm.weight"), /layer 3 has no post_attention_layernorm\./],
    ["fewer layers", { num_hidden_layers: 3 }, tensors(), /num_hidden_layers is 3, and there is model\.layers\.3\./],
    ["a last norm of integers", {}, typed("model.norm.weight", "I16"), /model.norm.weight has the type I16/],
    ["a norm of 32-bit integers", {}, typed("model.layers.0.input_layernorm.weight", "I32"), /input_layernorm.weight has the type I32/],
    ["no untied head", {}, without("lm_head.weight"), /no output head/],
    ["16-bit integers", {}, every("I16"), /has the type I16/],
    ["8-bit integers without a quantization", {}, every("I8"), /has the type I8, but config\.json states no quantization/],
    ["a quantization without quantized tensors", { quantization_config: { quant_method: "awq", bits: 4 } }, tensors(), /quantization awq, but no tensor/]
  ] as const)("%s: is refused with the contradiction", (_, config, weights, message) => {
    assert.match(problemOf({ ...llama, ...config }, weights) ?? "agreed", message)
  })

  it("are refused if a Llama's names have no place in any engine, and agree if one engine has a place for them", () => {
    const renamed = (rename: (name: string) => string): Tensors => new Map([...tensors()].map(([name, tensor]) => [rename(name), tensor] as const))
    const bare = renamed((name) => name.replace(/^model\./, ""))
    assert.match(problemOf(llama, bare) ?? "agreed", /no tensor name begins with model\.layers\., which LlamaForCausalLM requires/)
    assert.match(problemOf({ ...llama, architectures: ["Qwen2ForCausalLM"], model_type: "qwen2" }, bare) ?? "agreed", /which Qwen2ForCausalLM requires/)
    assert.match(problemOf({ ...llama, architectures: ["GemmaForCausalLM"], model_type: "gemma" }, bare) ?? "agreed", /which GemmaForCausalLM requires/)
    assert.match(
      problemOf(
        llama,
        renamed((name) => name.replace(/^model\.(?=embed)/, ""))
      ) ?? "agreed",
      /begins with model\.embed_tokens\./
    )
    assert.match(
      problemOf(
        llama,
        renamed((name) => name.replace(/^model\.(?=norm)/, ""))
      ) ?? "agreed",
      /begins with model\.norm\./
    )
    assert.match(
      problemOf(
        llama,
        renamed((name) => name.replace(/^model\./, "language_model.model."))
      ) ?? "agreed",
      /begins with model\.layers\./
    )
    // SGLang reads a Qwen3 in this form.
    assert.isNull(problemOf({ ...llama, architectures: ["Qwen3ForCausalLM"] }, bare))
  })

  it("agree if extra layers are for multi-token prediction, and if a family has norms under other names", () => {
    assert.isNull(problemOf({ ...llama, num_hidden_layers: 3, num_nextn_predict_layers: 1 }, tensors()))
    assert.isNull(problemOf({ ...llama, architectures: ["Olmo2ForCausalLM"] }, without("model.layers.1.input_layernorm.weight")))
    assert.isNull(problemOf({ ...llama, architectures: ["OlmoForCausalLM"] }, without("model.norm.weight")))
  })

  it("are checked for the common properties if the layout is unknown", () => {
    const other = { ...llama, architectures: ["SomethingForCausalLM"], num_attention_heads: 8 }
    assert.isNull(problemOf(other, tensors()))
    // Rows beyond the vocabulary are padding.
    assert.isNull(problemOf({ ...other, vocab_size: 500 }, tensors()))
    for (const config of [{ hidden_size: 256 }, { vocab_size: 1_024 }, { num_hidden_layers: 5 }])
      assert.isNotNull(problemOf({ ...other, ...config }, tensors()))
    assert.isNotNull(problemOf(other, every("I16")))
  })
})
