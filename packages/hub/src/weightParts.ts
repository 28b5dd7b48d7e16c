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
/** Gate and up projections of all experts of a layer in one tensor, plain or packed. */
const fusedExperts = /\.experts\.(gate_up_proj|w13)(_blocks|_weight|\.weight|_packed)?$/
const keyValue = /\.(k_proj|v_proj|key|value|k_b_proj|wk|wv)\./
const fused = /\.(qkv_proj|c_attn|query_key_value|W_pack|wqkv|Wqkv)\./
// vLLM's `ReplicatedLinear`: routers, MLA's down projections, the index of sparse attention.
const replicatedNames =
  /\.(gate|router|q_a_proj|kv_a_proj_with_mqa|kv_a_proj|fused_qkv_a_proj|indexer\.[a-z_]+|e_score_correction_bias|shared_expert_gate)(\.|$)/

/** Whether a tensor belongs to a tower for images or audio, or to its projection into the text model. */
export const isTower = (name: string): boolean => tower.test(name)

/** Whether engines do not load a tensor of this name. */
const isUnloaded = (name: string, { num_layers, shape }: ModelConfig): boolean => {
  if (recomputed.test(name) || prediction.test(name) || speaking.test(name)) return true
  const layer = isTower(name) ? null : textLayer.exec(name)
  if (layer !== null && Number(layer[1]) >= num_layers) return true
  // An output head that repeats the embeddings is not loaded if the model ties them.
  return head.test(name) && shape?.tied_embeddings === true
}

type Part = "towers" | "experts" | "embeddings" | "replicated" | "key_value" | "fused"

/** The parts of a loaded tensor's bytes, in order of precedence. All other tensors are divided evenly. */
const partsByName: ReadonlyArray<readonly [part: Part, holds: (tensor: TensorGroup) => boolean]> = [
  ["towers", ({ name }) => isTower(name)],
  ["experts", ({ name }) => expert.test(name) && !sharedExpert.test(name)],
  ["embeddings", ({ name }) => embedding.test(name)],
  ["replicated", ({ name, shape }) => replicatedNames.test(name) || shape.length < 2],
  ["key_value", ({ name }) => keyValue.test(name)],
  ["fused", ({ name }) => fused.test(name)]
]

/** The tally for the type of an unquantized tensor. */
const typePart = (dtype: string): "float32" | "float8" | null => {
  if (dtype === "F32") return "float32"
  return /^F8_E[45]M/.test(dtype) ? "float8" : null
}

/**
 * Bytes of the weights that are not divided evenly by the GPUs, by the families' tensor names. Each byte counts in one
 * part only.
 */
export const weightParts = (groups: Iterable<TensorGroup>, config: ModelConfig): WeightParts => {
  const parts = { replicated: 0, key_value: 0, embeddings: 0, towers: 0, experts: 0, float32: 0, float8: 0, unloaded: 0 }
  let fusedBytes = 0
  const headBytes = config.num_attention_heads + 2 * config.num_kv_heads
  for (const tensor of groups) {
    const { bytes, dtype, name } = tensor
    if (isUnloaded(name, config)) {
      parts.unloaded += bytes
      continue
    }
    const type = config.quantization === "none" ? typePart(dtype) : null
    if (type !== null) parts[type] += bytes
    if (fusedExperts.test(name) && tensor.shape.length > 2) fusedBytes = Math.max(fusedBytes, Math.ceil(bytes / Math.max(1, tensor.count)))
    const part = partsByName.find(([, holds]) => holds(tensor))?.[0]
    if (part === "fused") parts.key_value += Math.floor((bytes * 2 * config.num_kv_heads) / headBytes)
    else if (part !== undefined) parts[part] += bytes
  }
  const { float8, ...rest } = parts
  return { ...rest, ...(float8 === 0 ? {} : { float8 }), ...(fusedBytes === 0 ? {} : { fused_experts: fusedBytes }) }
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
