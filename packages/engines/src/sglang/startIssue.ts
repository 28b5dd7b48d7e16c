import { type EngineLoad, type FlagIssue, inLatents, shapeOf } from "@seatrial/domain"
import { capabilityText, computeCapability } from "../computeCapability.ts"
import { registeredQuantizations } from "./generated/quantizations.ts"

/**
 * Models with latent attention that need other backends in deterministic mode (`handle_deterministic_inference` of
 * `arg_groups/attention_hook.py`).
 */
const absorbed: ReadonlySet<string> = new Set([
  "DeepseekV2ForCausalLM",
  "DeepseekV3ForCausalLM",
  "DeepseekV32ForCausalLM",
  "MistralLarge3ForCausalLM",
  "PixtralForConditionalGeneration",
  "GlmMoeDsaForCausalLM",
  "Glm4MoeLiteForCausalLM",
  "Glm5NextForConditionalGeneration"
])

/** Why a backend cannot start on a GPU of this generation, as the rest of a sentence; null if it can. */
const backendProblem = (backend: string, { cacheDtype = "auto", config, flags }: EngineLoad, generation: number | null): string | null => {
  const latent = shapeOf(inLatents(config)).layers.some(({ kind }) => kind === "latent")
  const isOf = (...generations: ReadonlyArray<number>) => generation === null || generations.includes(generation)
  if (backend === "fa3" && !(isOf(9) || (isOf(8) && !latent)))
    return latent ? "with latent attention it needs a card of compute capability 9.0" : "it supports only cards of the generations 8 and 9"
  if (backend === "trtllm_mha") {
    if (latent) return "its layers store latents (MLA), which need another backend"
    if (!isOf(9, 10, 12)) return "it supports only cards of the generations 9, 10 and 12"
    if (generation === 12 && (cacheDtype === "fp8" || cacheDtype === "fp8_e4m3")) return "it does not support a KV cache of fp8_e4m3 on this card"
  }
  if (flags.enable_deterministic_inference === true && absorbed.has(config.architecture)) {
    if (backend === "flashinfer") return "with enable_deterministic_inference it does not support latent attention"
    if (backend === "fa4" && !isOf(10, 11)) return "with enable_deterministic_inference it supports latent attention only on cards of the generations 10 and 11"
  }
  return null
}

/**
 * The first flag that prevents SGLang 0.5.23 from starting on this GPU or with this model, or null. An unknown GPU is
 * never a reason.
 */
export const sglangStartIssue = (load: EngineLoad): FlagIssue | null => {
  const { card, config, flags } = load
  const has = computeCapability(card.gpu_pool)
  const generation = has === null ? null : Math.floor(has / 10)
  const where = has === null ? card.gpu_pool : `${card.gpu_pool} (compute capability ${capabilityText(has)})`
  const { attention_backend: backend, quantization } = flags
  if (typeof quantization === "string" && has !== null) {
    const least = registeredQuantizations[quantization] ?? 0
    if (has < least)
      return { flag: "quantization", message: `quantization ${quantization} needs a card of compute capability ${capabilityText(least)}; this is ${where}.` }
  }
  if (typeof backend === "string") {
    const problem = backendProblem(backend, load, generation)
    return problem === null
      ? null
      : { flag: "attention_backend", message: `attention_backend ${backend} cannot run ${config.architecture} on ${where}: ${problem}.` }
  }
  // Only on generations 10 and 12 the automatic choice is a backend that supports deterministic mode.
  if (flags.enable_deterministic_inference === true && generation !== null && generation !== 10 && generation !== 12) {
    const problem = backendProblem("fa3", load, generation)
    if (problem !== null) {
      const message = `enable_deterministic_inference uses the attention_backend fa3 on ${where}, which cannot run ${config.architecture}: ${problem}.`
      return { flag: "enable_deterministic_inference", message }
    }
  }
  return null
}
