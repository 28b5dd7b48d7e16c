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

/** The GPU of a start, as far as it decides which backends can run. */
interface StartCard {
  readonly capability: number | null
  /** The major compute capability: 9 for 9.0. */
  readonly generation: number | null
  /** For messages. */
  readonly name: string
}

const startCardOf = (gpuPool: string): StartCard => {
  const capability = computeCapability(gpuPool)
  return capability === null
    ? { capability, generation: null, name: gpuPool }
    : { capability, generation: Math.floor(capability / 10), name: `${gpuPool} (compute capability ${capabilityText(capability)})` }
}

/** Whether the GPU belongs to one of these generations or is unknown. */
const isOf = ({ generation }: StartCard, ...generations: ReadonlyArray<number>) => generation === null || generations.includes(generation)

const storesLatents = (config: EngineLoad["config"]): boolean => shapeOf(inLatents(config)).layers.some(({ kind }) => kind === "latent")

const fa3Problem = ({ config }: EngineLoad, card: StartCard): string | null => {
  const latent = storesLatents(config)
  if (isOf(card, 9) || (isOf(card, 8) && !latent)) return null
  return latent ? "with latent attention it needs a card of compute capability 9.0" : "it supports only cards of compute capability 8.x or 9.x"
}

const trtllmProblem = ({ cacheDtype = "auto", config }: EngineLoad, card: StartCard): string | null => {
  if (storesLatents(config)) return "its layers store latents (MLA), which need another backend"
  if (!isOf(card, 9, 10, 12)) return "it supports only cards of compute capability 9.x, 10.x or 12.x"
  const narrow = cacheDtype === "fp8" || cacheDtype === "fp8_e4m3"
  return card.generation === 12 && narrow ? "it does not support a KV cache of fp8_e4m3 on this card" : null
}

const deterministicProblem = (backend: string, { config, flags }: EngineLoad, card: StartCard): string | null => {
  if (flags.enable_deterministic_inference !== true || !absorbed.has(config.architecture)) return null
  if (backend === "flashinfer") return "with enable_deterministic_inference it does not support latent attention"
  return backend === "fa4" && !isOf(card, 10, 11)
    ? "with enable_deterministic_inference it supports latent attention only on cards of compute capability 10.x or 11.x"
    : null
}

const backendProblems: ReadonlyMap<string, (load: EngineLoad, card: StartCard) => string | null> = new Map([
  ["fa3", fa3Problem],
  ["trtllm_mha", trtllmProblem]
])

/** Why a backend cannot start on this GPU, as the rest of a sentence; null if it can. */
const backendProblem = (backend: string, load: EngineLoad, card: StartCard): string | null =>
  backendProblems.get(backend)?.(load, card) ?? deterministicProblem(backend, load, card)

const quantizationIssue = ({ flags: { quantization } }: EngineLoad, { capability, name }: StartCard): FlagIssue | null => {
  if (typeof quantization !== "string" || capability === null) return null
  const least = registeredQuantizations[quantization] ?? 0
  if (capability >= least) return null
  return { flag: "quantization", message: `quantization ${quantization} needs a card of compute capability ${capabilityText(least)}; this is ${name}.` }
}

const backendIssue = (backend: string, load: EngineLoad, card: StartCard): FlagIssue | null => {
  const problem = backendProblem(backend, load, card)
  if (problem === null) return null
  return { flag: "attention_backend", message: `attention_backend ${backend} cannot run ${load.config.architecture} on ${card.name}: ${problem}.` }
}

/**
 * The issue of the automatic choice in deterministic mode. Only on generations 10 and 12 it is a backend that supports
 * this mode.
 */
const deterministicIssue = (load: EngineLoad, card: StartCard): FlagIssue | null => {
  if (load.flags.enable_deterministic_inference !== true || isOf(card, 10, 12)) return null
  const problem = backendProblem("fa3", load, card)
  if (problem === null) return null
  const message = `enable_deterministic_inference uses the attention_backend fa3 on ${card.name}, which cannot run ${load.config.architecture}: ${problem}.`
  return { flag: "enable_deterministic_inference", message }
}

/**
 * The first flag that prevents SGLang 0.5.23 from starting on this GPU or with this model, or null. An unknown GPU is
 * never a reason.
 */
export const sglangStartIssue = (load: EngineLoad): FlagIssue | null => {
  const card = startCardOf(load.card.gpu_pool)
  const { attention_backend: backend } = load.flags
  return quantizationIssue(load, card) ?? (typeof backend === "string" ? backendIssue(backend, load, card) : deterministicIssue(load, card))
}
