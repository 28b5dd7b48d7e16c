import type { EngineLoad } from "@seatrial/domain"
import type { EngineAdapter } from "../EngineAdapter.ts"
import { startFailureOf } from "../engineLog.ts"
import { alwaysDenied, flagIssueOf } from "../flagIssue.ts"
import { gpuEngine, parserFlags } from "../gpuEngine.ts"
import { imageLimits, sees, servedImages } from "../images.ts"
import { sglangOwnPrompts } from "../ownPrompts.ts"
import { standInContext } from "../reference/computedContext.ts"
import { fullToolCalling, servedContract } from "../servedContract.ts"
import { needsWholeExperts } from "../splitIssue.ts"
import { sglangAdapters } from "./adapters.ts"
import { limitFlags, sglangContainer } from "./container.ts"
import { sglangFlags } from "./flags.ts"
import { registered } from "./generated/architectures.ts"
import { commandLine } from "./generated/commandLine.ts"
import { sglangLoadIssue } from "./loadIssue.ts"
import { sglangMeasured } from "./measured.ts"
import { sglangLimits, sglangMemory } from "./memory.ts"
import { sglangCacheIssue, sglangModelIssue } from "./modelIssue.ts"
import { sglangQuantization } from "./quantizationRules.ts"
import { sglangLines } from "./readings.ts"
import { sglangStartFailures } from "./startFailures.ts"
import { templateByName } from "./templateByName.ts"
import { sglangWire } from "./wire.ts"

const version = "sglang-0.5.23"
const table = { version, flags: sglangFlags, denied: alwaysDenied, commandLine }

/**
 * These paths need no key. Before it answers, SGLang turns the whole tensor into a list of Python numbers of 32 bytes
 * each (`get_weights_by_name` of `srt/models/llama.py`). The limit allows 1 GiB.
 */
const loadedTensors = { values: "/get_weights_by_name", checksum: "/weights_checker", mostValues: 2 ** 25 } as const
const dtypeOf = (flag: unknown) => (flag === "bfloat16" || flag === "float16" ? flag : "auto")

/** The flags that enable image input, which SGLang enables for some models only on request. */
const imageFlags = ({ config, flags }: EngineLoad, chatTemplate: string | null) =>
  flags.limit_mm_data_per_request === undefined && flags.enable_multimodal === undefined && sees(config, chatTemplate)
    ? { enable_multimodal: true, limit_mm_data_per_request: { ...imageLimits, audio: 0 } }
    : {}

/** SGLang 0.5.23 from its official image. */
export const sglang: EngineAdapter = {
  ...gpuEngine({ architectures: registered, quantization: sglangQuantization, modelIssue: sglangModelIssue }),
  runtime: "sglang",
  wire: sglangWire,
  version,
  names: "any",
  cacheIssue: sglangCacheIssue,
  kvCacheDtypes: new Set(["auto", "fp8", "fp8_e4m3", "fp8_e5m2"]),
  memory: sglangMemory,
  served: servedContract({
    toolCalls: ["deepseek_v3", "glm45", "gpt_oss", "hermes", "kimi_k2", "lfm2", "llama3_json", "minimax_m2", "mistral", "qwen3_coder"],
    toolCalling: fullToolCalling,
    // Formats whose parsers support structural tags (`supports_structural_tag` of `srt/function_call`). Other parsers
    // treat strict tools like all tools.
    strict: ["deepseek_v3", "gpt_oss", "hermes", "kimi_k2", "llama3_json", "mistral", "qwen3_coder"],
    reasoning: ["gpt_oss", "mistral", "think"],
    // The controls that chat templates name. SGLang has no token budget.
    reasoningControls: { thinking_toggle: true, effort_values: ["low", "medium", "high"], token_budget: false }
  }),
  // Deterministic mode uses one seed for all choices of a request (`sampling_seed`), so that they are equal. Without
  // this mode SGLang ignores the seed.
  unserved: (flags) => [flags.enable_deterministic_inference === true ? "n" : "seed"],
  imageInput: (config, flags) => (flags.enable_multimodal === true ? servedImages(config, flags.limit_mm_data_per_request) : null),
  adapters: sglangAdapters,
  // The reference engine uses the template of the model.
  nameIssue: (repo, config, simulated) => (simulated ? null : templateByName(sglangQuantization.version, repo, config)),
  flagIssue: (flags) => flagIssueOf(table, flags),
  loadIssue: sglangLoadIssue,
  longestContext: standInContext,
  chosenFlags: (load, { chat_template: chatTemplate, refused_sampling: refusedSampling }) => {
    const images = imageFlags(load, chatTemplate)
    return {
      ...limitFlags(sglangLimits({ ...load, flags: { ...load.flags, ...images } })),
      // If tensor parallelism would cut a group of quantized values, distribute whole experts instead.
      ...(load.flags.ep_size === undefined && needsWholeExperts(load) ? { ep_size: load.card.gpu_count } : {}),
      ...parserFlags("sglang", load, chatTemplate),
      // Otherwise SGLang refuses every request that leaves out a sampling parameter whose value in the repository is
      // invalid.
      ...(refusedSampling === true ? { sampling_defaults: "openai" } : {}),
      ...images
    }
  },
  variables: ["SGLANG_PLUGINS", "DISABLE_OPENAPI_DOC", "SGLANG_WARMUP_TIMEOUT", "SGLANG_CACHE_DIR", "SGLANG_LOGPROB_CHUNK_SIZE", "SGLANG_ENABLE_LOGPROB_CHUNK"],
  container: sglangContainer,
  offers: ({ engine_flags }, simulated) => ({
    // SGLang returns log-probabilities of a prompt only if the prompt is echoed. The reference engine only supports
    // `prompt_logprobs`.
    scoring: { echo: true, logprobs: 1, ...(simulated ? { prompt_logprobs: 0 } : {}) },
    prefixCache: engine_flags?.disable_radix_cache !== true,
    ...(simulated ? {} : { cacheBlock: typeof engine_flags?.page_size === "number" ? engine_flags.page_size : 1 }),
    unsalted: [...sglangWire.unsaltedPaths],
    // The sampler uses seeds only in deterministic mode.
    seeds: simulated || engine_flags?.enable_deterministic_inference === true,
    // A request without a seed gets the seed 42 in this mode (`SamplingBatchInfo.from_schedule_batch`).
    ...(!simulated && engine_flags?.enable_deterministic_inference === true ? { fixedUnseeded: true as const } : {}),
    // The overlap scheduler prepares a step before it processes the result of the last one (`cumulate_penalty_output_tokens`).
    ...(!simulated && engine_flags?.disable_overlap_schedule !== true ? { latePenalties: true as const } : {}),
    // A request that runs again gets new counts of zero (`BatchedFrequencyPenalizer._prepare`).
    ...(simulated ? {} : { forgetsPenalties: true as const }),
    // `_get_running_request_total_token_offset` of `srt/managers/schedule_policy.py`.
    ...(simulated ? { exactArithmetic: true } : { reservesFixedLengths: true as const }),
    // SGLang reserves one token of the longest context, and limits an answer to one token less than the rest
    // (`max_req_len`, `init_req_max_new_tokens`).
    unfilled: 2,
    // The parts of a message are joined by blanks (`process_content_for_template_format`), and templates get all
    // members of a tool's class (`Tool.model_dump`).
    ...(simulated ? {} : { ownPrompts: sglangOwnPrompts(engine_flags?.tool_call_parser), templated: { between: " ", tool: { defer_loading: null } } }),
    weightVersion: "/model_info",
    ...(engine_flags?.quantization === undefined ? { loadedTensors: { ...loadedTensors, type: dtypeOf(engine_flags?.dtype) } } : {})
  }),
  measured: sglangMeasured,
  weightsLoaded: sglangLines.weights,
  bootFailure: (log) => startFailureOf(log, sglangStartFailures, version)
}
