import type { ModelConfig } from "@seatrial/domain"
import { describe, expect, it } from "vitest"
import { tinyConfig } from "../../../test/models/modelConfigs.ts"
import { draftHead } from "../src/draftHead.ts"
import { weightParts } from "../src/weightParts.ts"

const config = (num_layers: number): ModelConfig => ({ ...tinyConfig, architecture: "X", model_type: "x", num_layers })

// As each engine skips them while speculative decoding is off: vLLM's `get_spec_layer_idx_from_weight_name` and
// `skip_prefixes`, SGLang's `num_nextn_predict_layers`.
const heads: ReadonlyArray<readonly [model: string, layers: number, tensors: ReadonlyArray<string>]> = [
  ["DeepSeek-V3", 61, ["model.layers.61.eh_proj.weight", "model.layers.61.shared_head.head.weight", "model.layers.61.mlp.experts.3.gate_proj.weight"]],
  ["GLM-4.5", 92, ["model.layers.92.enorm.weight", "model.layers.92.embed_tokens.weight", "model.layers.92.self_attn.k_proj.weight"]],
  ["Step-3.5", 45, ["model.layers.45.transformer.shared_head.output.weight", "model.layers.47.eh_proj.weight"]],
  ["Qwen3-Next", 48, ["mtp.fc.weight", "mtp.layers.0.mlp.experts.17.up_proj.weight", "mtp.norm.weight"]],
  ["MiMo", 36, ["model.mtp_layers.0.input_proj.weight", "model.mtp_layers.0.mlp.down_proj.weight"]],
  ["ERNIE-4.5", 28, ["model.mtp_block.0.self_attn.q_proj.weight", "model.mtp_linear_proj.0.weight", "model.mtp_emb_norm.0.weight"]],
  [
    "Qwen3-Omni, whose speech output is not loaded either",
    48,
    ["talker.model.layers.0.mlp.gate.weight", "code2wav.decoder.0.conv.weight", "token2wav.dit.proj.weight"]
  ],
  ["LongCat-Flash", 28, ["model.mtp.layers.0.eh_proj.weight", "model.mtp.embed_tokens.weight"]]
]

describe("heads for multi-token prediction", () => {
  it.each(heads)("of %s are not loaded, and its layers are", (_, layers, tensors) => {
    const group = (name: string) => ({ name, dtype: "BF16", shape: [4, 4], count: 1, bytes: 32 })
    expect(weightParts(tensors.map(group), config(layers)).unloaded).toBe(32 * tensors.length)
    const own = [`model.layers.${layers - 1}.self_attn.q_proj.weight`, "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"]
    expect(weightParts(own.map(group), config(layers)).unloaded).toBe(0)
  })

  it.each([
    [{ architectures: ["LlamaForCausalLMEagle3"], draft_vocab_size: 32_000 }, /^an EAGLE-3 head that drafts tokens for another model/],
    [{ architectures: ["LlamaForCausalLM"], draft_vocab_size: 32_000 }, /^an EAGLE-3 head/],
    [{ architectures: ["Eagle3Qwen3ForCausalLM"] }, /^an EAGLE-3 head/],
    [{ architectures: ["EagleLlamaForCausalLM"] }, /^an EAGLE head/],
    [{ architectures: ["LlamaForCausalLM"], eagle_config: { eagle_head_type: "llama" } }, /^an EAGLE head/],
    [
      { architectures: ["Eagle3Speculator"], speculators_model_type: "eagle3", speculators_config: { verifier: { name_or_path: "Qwen/Qwen3-8B" } } },
      /^an EAGLE-3 head that drafts tokens for Qwen\/Qwen3-8B, and holds no model/
    ],
    [{ medusa_num_heads: 4, base_model_name_or_path: "lmsys/vicuna-7b-v1.3" }, /^a set of Medusa heads that drafts tokens for lmsys\/vicuna-7b-v1\.3/],
    [{ architectures: ["MLPSpeculatorPreTrainedModel"] }, /^an MLP speculator/],
    [{ architectures: ["DFlashDraftModel"] }, /^a block-drafting head/],
    [{ architectures: ["DeepseekV3ForCausalLMNextN"] }, /^a multi-token prediction head/],
    [{ architectures: ["MiMoMTP"] }, /^a multi-token prediction head/]
  ])("in a repository of their own are recognized: %o", (config, words) => {
    expect(draftHead(config)).toMatch(words)
  })

  it.each([
    { architectures: ["LlamaForCausalLM"] },
    { architectures: ["DeepseekV3ForCausalLM"], num_nextn_predict_layers: 1 },
    { architectures: ["MiMoForCausalLM"], num_nextn_predict_layers: 1 },
    { architectures: ["Qwen3NextForCausalLM"], mtp_num_hidden_layers: 1 },
    { architectures: ["Eagle2_5_VLForConditionalGeneration"] },
    { architectures: ["Glm4MoeForCausalLM"], num_nextn_predict_layers: 1, draft_vocab_size: null },
    { architectures: 7 },
    {}
  ])("are not reported for a model that includes them in addition to its layers, or has none: %o", (config) => {
    expect(draftHead(config)).toBeNull()
  })
})
