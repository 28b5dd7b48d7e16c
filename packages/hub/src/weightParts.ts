import type { ModelConfig, WeightParts } from "@seatrial/domain"
import type { TensorGroup } from "./TensorGroups.ts"

const tower = /(^|[._])(vision|visual|vit|image|audio|speech|multi_modal_projector|mm_projector|mlp1|embed_vision|embed_audio)/
const textLayer = /(?:^|\.)(?:layers|h|blocks|block)\.(\d+)\./
const prediction = /(^|\.)(mtp|nextn|eh_proj|enorm|hnorm)([._]|$)/
/**
 * Parts for speech output. Engines load only the part for text (`WeightsMapper` of vLLM's `qwen3_omni_moe_thinker.py`).
 */
const speaking = /^(talker|token2wav|code2wav)\./
const recomputed = /(rotary_emb\.inv_freq|attn\.(masked_)?bias|masked_bias|rotary_emb\.(cos|sin)_cached)$/
const embedding =
  /(^|\.)(embed_tokens(_extend)?|word_embeddings|wte|embed_in|embeddings?|lm_head|embed_out|tok_embeddings)\.(weight|qweight|scales|[a-z_]+)$|^output\.weight$/
const head = /(^|\.)(lm_head|embed_out)\./
const expert = /\.(experts|moe_experts|block_sparse_moe\.(input|output)_linear)\b/
const sharedExpert = /shared_expert/
const keyValue = /\.(k_proj|v_proj|key|value|k_b_proj|wk|wv)\./
const fused = /\.(qkv_proj|c_attn|query_key_value|W_pack|wqkv|Wqkv)\./
// vLLM's `ReplicatedLinear`: routers, MLA's down projections, the index of sparse attention.
const replicatedNames =
  /\.(gate|router|q_a_proj|kv_a_proj_with_mqa|kv_a_proj|fused_qkv_a_proj|indexer\.[a-z_]+|e_score_correction_bias|shared_expert_gate)(\.|$)/

/** Whether a tensor belongs to a tower for images or audio, or to its projection into the text model. */
export const isTower = (name: string): boolean => tower.test(name)

/**
 * Bytes of the weights that are not divided evenly by the GPUs, by the families' tensor names. Each byte counts in one
 * part only.
 */
export const weightParts = (groups: Iterable<TensorGroup>, config: ModelConfig): WeightParts => {
  const parts = { replicated: 0, key_value: 0, embeddings: 0, towers: 0, experts: 0, float32: 0, float8: 0, unloaded: 0 }
  const headBytes = config.num_attention_heads + 2 * config.num_kv_heads
  for (const { bytes, dtype, name, shape } of groups) {
    const inTower = isTower(name)
    const layer = inTower ? null : textLayer.exec(name)
    if (recomputed.test(name) || prediction.test(name) || speaking.test(name) || (layer !== null && Number(layer[1]) >= config.num_layers)) {
      parts.unloaded += bytes
      continue
    }
    // An output head that repeats the embeddings is not loaded if the model ties them.
    if (head.test(name) && config.shape?.tied_embeddings === true) {
      parts.unloaded += bytes
      continue
    }
    if (dtype === "F32" && config.quantization === "none") parts.float32 += bytes
    if (/^F8_E[45]M/.test(dtype) && config.quantization === "none") parts.float8 += bytes
    if (inTower) parts.towers += bytes
    else if (expert.test(name) && !sharedExpert.test(name)) parts.experts += bytes
    else if (embedding.test(name)) parts.embeddings += bytes
    else if (replicatedNames.test(name) || shape.length < 2) parts.replicated += bytes
    else if (keyValue.test(name)) parts.key_value += bytes
    else if (fused.test(name)) parts.key_value += Math.floor((bytes * 2 * config.num_kv_heads) / headBytes)
  }
  const { float8, ...rest } = parts
  return float8 === 0 ? rest : parts
}

/** Adds the types and names of the weights that not every engine accepts to the configuration. */
export const withTensors = (config: ModelConfig, groups: Iterable<TensorGroup>): ModelConfig => {
  const types = new Set<string>()
  let bare = true
  for (const { dtype, name } of groups) {
    if (name.startsWith("model.")) bare = false
    if (/^F(64|8_)/.test(dtype) && name.endsWith(".weight") && !isTower(name)) types.add(dtype)
  }
  const withNames: ModelConfig = bare ? { ...config, bare_names: true } : config
  if (types.size === 0 || config.quantization !== "none" || config.computation === undefined) return withNames
  return { ...withNames, computation: { ...config.computation, types: [...types].sort() } }
}
