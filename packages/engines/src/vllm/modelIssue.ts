import { type EngineLoad, type KvCacheDtype, type ModelConfig, shapeOf } from "@seatrial/domain"
import { capabilityText, computeCapability } from "../computeCapability.ts"
import { quantizationIssue } from "../quantizationIssue.ts"
import { type OwnTypes, typeIssue } from "../typeIssue.ts"
import { ownTypes } from "./generated/architectures.ts"
import { vllmQuantization } from "./quantizationRules.ts"

type Card = EngineLoad["card"]

/**
 * Head sizes that FlashInfer supports. Only FlashInfer reads an 8-bit cache on GPUs that cannot compute in 8 bits
 * (`backends/flashinfer.py`).
 */
const flashInferHeads = [64, 128, 256, 512]

/**
 * Architectures whose tensor names must have their full prefix. SGLang adds a missing prefix (`load_weights` of
 * `models/qwen3.py` and `models/gemma3_causal.py`).
 */
const withBeginnings: ReadonlySet<string> = new Set(["Qwen3ForCausalLM", "Gemma3ForCausalLM"])

/**
 * Architectures whose type vLLM derives if the configuration names none (`_ARCHITECTURE_TO_MODEL_TYPE` of
 * `transformers_utils/config.py`).
 */
const typedByName: ReadonlySet<string> = new Set(["LongcatFlashForCausalLM", "LongcatFlashNgramForCausalLM"])
const own: OwnTypes = { version: vllmQuantization.version, types: ownTypes, architectures: typedByName }

/** Why vLLM 0.33.0 cannot serve a model on a GPU with any settings; null if it can. */
export const vllmModelIssue = (config: ModelConfig, card: Card): string | null => {
  const issue = typeIssue(own, config) ?? quantizationIssue(vllmQuantization, config, card.gpu_pool)
  if (issue !== null) return issue
  if (config.bare_names === true && withBeginnings.has(config.architecture)) {
    return `${vllmQuantization.version} cannot load tensors of ${config.architecture} whose names do not begin with model.`
  }
  const has = computeCapability(card.gpu_pool)
  const sparse = shapeOf(config).layers.some((group) => group.kind === "latent" && group.index_bytes > 0)
  if (has !== null && has < 90 && sparse) {
    return `${vllmQuantization.version} needs a card of compute capability 9.0 for sparse latent attention; ${card.gpu_pool} has ${capabilityText(has)}.`
  }
  return null
}

/** Why the KV cache cannot have this type on a GPU; null if it can. */
export const vllmCacheIssue = (config: ModelConfig, dtype: KvCacheDtype, card: Card): string | null => {
  const has = computeCapability(card.gpu_pool)
  if (dtype === "auto" || has === null || has >= 89) return null
  const heads = shapeOf(config).layers.flatMap((group) => (group.kind === "state" ? [] : [group.kind === "latent" ? 0 : group.head_size]))
  // FlashInfer does not support attention sinks here.
  if (has >= 80 && config.model_type !== "gpt_oss" && heads.every((size) => flashInferHeads.includes(size))) return null
  return `${vllmQuantization.version} reads an 8-bit KV cache of ${config.architecture} on cards of compute capability 8.9 and up; ${card.gpu_pool} has ${capabilityText(has)}.`
}
