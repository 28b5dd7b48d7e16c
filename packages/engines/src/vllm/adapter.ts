import type { EngineLoad, ModelConfig } from "@seatrial/domain"
import type { EngineAdapter } from "../EngineAdapter.ts"
import { startFailureOf } from "../engineLog.ts"
import { alwaysDenied, flagIssueOf } from "../flagIssue.ts"
import { gpuEngine, parserFlags } from "../gpuEngine.ts"
import { imageLimits, sees } from "../images.ts"
import { vllmOwnPrompts } from "../ownPrompts.ts"
import { standInContext } from "../reference/computedContext.ts"
import { fullToolCalling, servedContract } from "../servedContract.ts"
import { needsWholeExperts } from "../splitIssue.ts"
import { vllmAdapters } from "./adapters.ts"
import { vllmContainer, vllmImageInput } from "./container.ts"
import { vllmFlags } from "./flags.ts"
import { registered } from "./generated/architectures.ts"
import { commandLine } from "./generated/commandLine.ts"
import { vllmLoadIssue } from "./loadIssue.ts"
import { vllmMeasured } from "./measured.ts"
import { vllmLimits, vllmMemory } from "./memory.ts"
import { vllmCacheIssue, vllmModelIssue } from "./modelIssue.ts"
import { vllmQuantization } from "./quantizationRules.ts"
import { vllmLines } from "./readings.ts"
import { release } from "./release.ts"
import { vllmStartFailures } from "./startFailures.ts"
import { vllmWire } from "./wire.ts"

const version = `vllm-${release}`
const table = { version, flags: vllmFlags, denied: alwaysDenied, commandLine }

/**
 * Whether vLLM creates vision or audio towers for the model. Some configurations describe a tower in a form that
 * Seatrial does not read, or only a tower for audio.
 */
const hasTowers = ({ architecture, shape }: ModelConfig): boolean => (shape?.vision ?? null) !== null || registered.multimodal?.includes(architecture) === true

/** The flags that enable image input if the model allows it, and disable it otherwise. */
const imageFlags = ({ config, flags }: EngineLoad, chatTemplate: string | null) => {
  if (!hasTowers(config) || flags.limit_mm_per_prompt !== undefined || flags.language_model_only !== undefined) return {}
  return sees(config, chatTemplate) ? { limit_mm_per_prompt: imageLimits } : { language_model_only: true }
}

/** vLLM 0.33.0 from its official image. */
export const vllm: EngineAdapter = {
  ...gpuEngine({ architectures: registered, quantization: vllmQuantization, modelIssue: vllmModelIssue }),
  runtime: "vllm",
  wire: vllmWire,
  version,
  names: "all",
  cacheIssue: vllmCacheIssue,
  kvCacheDtypes: new Set(["auto", "fp8", "fp8_e4m3"]),
  memory: vllmMemory(release),
  served: servedContract({
    toolCalls: [
      "deepseek_v3",
      "functiongemma",
      "glm45",
      "gpt_oss",
      "granite",
      "hermes",
      "kimi_k2",
      "lfm2",
      "llama3_json",
      "minimax_m2",
      "mistral",
      "qwen3_coder"
    ],
    toolCalling: fullToolCalling,
    // Formats whose parsers have a grammar (`structural_tag_model` of `vllm/tool_parsers`). Other parsers treat strict
    // tools like all tools.
    strict: ["deepseek_v3", "glm45", "gpt_oss", "hermes", "kimi_k2", "llama3_json", "minimax_m2", "qwen3_coder"],
    reasoning: ["gpt_oss", "mistral", "think"],
    // The controls that chat templates name. vLLM also supports a token budget, but no check of the trial covers it
    // yet.
    reasoningControls: { thinking_toggle: true, effort_values: ["low", "medium", "high"], token_budget: false }
  }),
  imageInput: vllmImageInput,
  textOnly: { language_model_only: true },
  adapters: vllmAdapters,
  flagIssue: (flags) => flagIssueOf(table, flags),
  loadIssue: vllmLoadIssue,
  longestContext: (load) =>
    Math.min(standInContext(load), load.flags.enable_chunked_prefill === false ? vllmLimits(release, load).stepTokens : Number.POSITIVE_INFINITY),
  chosenFlags: (load, { chat_template: chatTemplate, refused_sampling: refusedSampling }) => {
    const { sequences, stepTokens, utilization } = vllmLimits(release, load)
    const { flags } = load
    return {
      max_num_seqs: Math.min(256, sequences),
      // Without chunked prefill a step must hold the longest prompt.
      max_num_batched_tokens: flags.enable_chunked_prefill === false ? Math.max(stepTokens, Math.min(load.maxContext, 65_536)) : stepTokens,
      gpu_memory_utilization: utilization,
      // If tensor parallelism would cut a group of quantized values, distribute whole experts instead.
      ...(flags.enable_expert_parallel === undefined && needsWholeExperts(load) ? { enable_expert_parallel: true } : {}),
      ...parserFlags("vllm", load, chatTemplate),
      // Otherwise vLLM refuses every request that leaves out a sampling parameter whose value in the repository is
      // invalid.
      ...(refusedSampling === true ? { generation_config: "vllm" } : {}),
      ...imageFlags(load, chatTemplate)
    }
  },
  variables: [
    ...["VLLM_PLUGINS", "VLLM_DO_NOT_TRACK", "VLLM_LOGGING_COLOR", "VLLM_SNAPSHOT", "VLLM_MEDIA_URL_ALLOW_REDIRECTS"],
    ...["VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_CACHE_ROOT", "VLLM_BATCH_INVARIANT"],
    // The first model runner has unbounded memory for scoring prompts.
    "VLLM_USE_V2_MODEL_RUNNER"
  ],
  container: vllmContainer,
  offers: ({ engine_flags }, simulated) => ({
    scoring: { prompt_logprobs: 0 },
    prefixCache: engine_flags?.enable_prefix_caching !== false,
    seeds: true,
    biasBeforePenalties: true,
    ...(engine_flags?.override_generation_config === undefined ? {} : { ownDefaults: true as const }),
    tellsCutResponses: true,
    // Templates that accept parts get each text as a part (`parse_chat_message_content`).
    ...(simulated ? { exactArithmetic: true } : { ownPrompts: vllmOwnPrompts, templated: { between: "\n", tool: {}, asParts: true } })
  }),
  measured: vllmMeasured,
  weightsLoaded: vllmLines.weights,
  bootFailure: (log) => startFailureOf(log, vllmStartFailures, version)
}
