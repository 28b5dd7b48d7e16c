import { type EngineLoad, type FlagIssue, type Measured, type ModelConfig, nameInEngine } from "@seatrial/domain"
import { namedFolder, templateArgument, writtenArgument } from "../adapterFiles.ts"
import type { EngineAdapter, EngineContainer } from "../EngineAdapter.ts"
import { renderFlags } from "../EngineFlag.ts"
import { bytesOfGib, lastHit, metricLabels, numberOf, startFailureOf, sumOf } from "../engineLog.ts"
import { alwaysDenied, flagIssueOf } from "../flagIssue.ts"
import { imageLimits, sees, servedImages } from "../images.ts"
import { vllmOwnPrompts } from "../ownPrompts.ts"
import { parsersFor } from "../parsers.ts"
import { takenQuantizations } from "../quantizationIssue.ts"
import { generating, otherPurpose } from "../RegisteredArchitectures.ts"
import { chosenStandInContext, standInContext } from "../reference/computedContext.ts"
import { withStandIn } from "../reference/modelIssue.ts"
import { standInTokenizerIssue } from "../reference/tokenizerIssue.ts"
import { servedContract } from "../servedContract.ts"
import { splitIssue } from "../splitIssue.ts"
import { templateIssue } from "../templateIssue.ts"
import { yarnOverrides } from "../yarn.ts"
import { vllmAdapters, vllmRank } from "./adapters.ts"
import { vllmFlags } from "./flags.ts"
import { registered } from "./generated/architectures.ts"
import { commandLine } from "./generated/commandLine.ts"
import { vllmLimits, vllmMemory } from "./memory.ts"
import { vllmCacheIssue, vllmModelIssue } from "./modelIssue.ts"
import { vllmQuantization } from "./quantizationRules.ts"
import { vllmCacheLabels, vllmLines, vllmMetrics } from "./readings.ts"
import { vllmStartFailures } from "./startFailures.ts"
import { vllmStartIssue } from "./startIssue.ts"
import { vllmWire } from "./wire.ts"

const release = "0.33.0"
const version = `vllm-${release}`
const table = { version, flags: vllmFlags, denied: alwaysDenied, commandLine }

/** Methods that store 16 bits per weight. */
const plain = (quantization: string) => quantization === "none"

const loadIssue = (load: EngineLoad): FlagIssue | null => {
  const { config, flags } = load
  const { sequences, stepTokens } = vllmLimits(release, load)
  const issue = (flag: string, message: string): FlagIssue => ({ flag, message })
  const requestedSequences = flags.max_num_seqs
  if (typeof requestedSequences === "number" && requestedSequences > sequences) {
    return issue(
      "max_num_batched_tokens",
      `max_num_batched_tokens (${stepTokens}) must be at least max_num_seqs (${requestedSequences}): each sequence takes a token of a step.`
    )
  }
  if (flags.enable_chunked_prefill === false && stepTokens < load.maxContext) {
    const message = `Without chunked prefill a step must hold the longest prompt: max_num_batched_tokens (${stepTokens}) must be at least max_context (${load.maxContext}).`
    return issue("enable_chunked_prefill", message)
  }
  if (flags.quantization !== undefined && !plain(config.quantization)) {
    return issue("quantization", `quantization requires a 16-bit checkpoint; this one is already ${config.quantization}.`)
  }
  if (flags.enable_expert_parallel === true && config.shape !== undefined && config.shape.experts === null) {
    return issue("enable_expert_parallel", `enable_expert_parallel requires a mixture of experts; ${config.architecture} is not one.`)
  }
  const threshold = flags.long_prefill_token_threshold
  if (typeof threshold === "number" && threshold > load.maxContext) {
    return issue("long_prefill_token_threshold", `long_prefill_token_threshold (${threshold}) must not be above max_context (${load.maxContext}).`)
  }
  if (flags.tool_strict_level !== undefined && flags.tool_call_parser === undefined) {
    return issue("tool_strict_level", "tool_strict_level requires a tool_call_parser.")
  }
  return vllmStartIssue(load)
}

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

/** Several names are separate words of one argument. */
const namesOf = (names: ReadonlyArray<string>, modelPath: string): ReadonlyArray<string> =>
  names.length === 0 ? [`--served-model-name=${modelPath}`] : ["--served-model-name", ...new Set(names.map((name) => nameInEngine(vllmWire, name)))]

/** vLLM 0.33.0 from its official image. */
export const vllm: EngineAdapter = {
  runtime: "vllm",
  wire: vllmWire,
  needsGpu: true,
  version,
  names: "all",
  architectures: generating(registered),
  extendsContext: ({ rope }) => rope !== undefined,
  otherPurpose: (architecture) => otherPurpose(registered, architecture),
  quantizations: takenQuantizations(vllmQuantization),
  modelIssue: withStandIn(vllmQuantization.version, vllmModelIssue),
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
    toolCalling: {
      tool_choice: { auto: true, required: true, named: true, none: true },
      parallel_calls: true,
      single_call: true,
      strict_arguments: true,
      tool_results: true
    },
    // Formats whose parsers have a grammar (`structural_tag_model` of `vllm/tool_parsers`). Other parsers treat strict
    // tools like all tools.
    strict: ["deepseek_v3", "glm45", "gpt_oss", "hermes", "kimi_k2", "llama3_json", "minimax_m2", "qwen3_coder"],
    reasoning: ["gpt_oss", "mistral", "think"],
    // The controls that chat templates name. vLLM also supports a token budget, but no check of the trial covers it
    // yet.
    reasoningControls: { thinking_toggle: true, effort_values: ["low", "medium", "high"], token_budget: false }
  }),
  imageInput: (config, flags) => (flags.language_model_only === true ? null : servedImages(config, flags.limit_mm_per_prompt)),
  textOnly: { language_model_only: true },
  adapters: vllmAdapters,
  tokenizerIssue: standInTokenizerIssue,
  templateIssue,
  flagIssue: (given) => flagIssueOf(table, given),
  loadIssue,
  longestContext: (load) =>
    Math.min(standInContext(load), load.flags.enable_chunked_prefill === false ? vllmLimits(release, load).stepTokens : Number.POSITIVE_INFINITY),
  chosenContext: chosenStandInContext,
  chosenFlags: (load, { chat_template: chatTemplate, refused_sampling: refusedSampling }) => {
    const { sequences, stepTokens, utilization } = vllmLimits(release, load)
    const { reasoning, toolCalls } = parsersFor("vllm", load.config.architecture, chatTemplate)
    const { flags } = load
    return {
      max_num_seqs: Math.min(256, sequences),
      // Without chunked prefill a step must hold the longest prompt.
      max_num_batched_tokens: flags.enable_chunked_prefill === false ? Math.max(stepTokens, Math.min(load.maxContext, 65_536)) : stepTokens,
      gpu_memory_utilization: utilization,
      // If tensor parallelism would cut a group of quantized values, distribute whole experts instead.
      ...(flags.enable_expert_parallel === undefined && splitIssue(load, false) !== null && splitIssue(load, true) === null
        ? { enable_expert_parallel: true }
        : {}),
      ...(reasoning === null ? {} : { reasoning_parser: reasoning }),
      ...(toolCalls === null ? {} : { tool_call_parser: toolCalls }),
      // Otherwise vLLM refuses every request that leaves out a sampling parameter whose value in the repository is
      // invalid.
      ...(refusedSampling === true ? { generation_config: "vllm" } : {}),
      ...imageFlags(load, chatTemplate)
    }
  },
  container: ({ adapter, bootSeconds, cachePath, chatTemplate, config, hostClass, modelPath, servedNames, settings }): EngineContainer => {
    const flags = settings.engine_flags ?? {}
    const { sequences, stepTokens, utilization } = vllmLimits(release, { card: hostClass, flags, maxContext: settings.max_context })
    const overrides = yarnOverrides(config, settings)
    const chosen = renderFlags(vllmFlags, {
      ...flags,
      max_num_seqs: sequences,
      max_num_batched_tokens: stepTokens,
      gpu_memory_utilization: utilization
    })
    return {
      command: ["vllm", "serve"],
      args: [
        `--model=${modelPath}`,
        ...namesOf(servedNames, modelPath),
        "--host=$(POD_IP)",
        "--port=8000",
        `--tensor-parallel-size=${hostClass.gpu_count}`,
        "--pipeline-parallel-size=1",
        `--max-model-len=${settings.max_context}`,
        `--kv-cache-dtype=${settings.kv_cache_dtype}`,
        ...(overrides === null ? [] : [`--hf-overrides=${overrides}`]),
        "--load-format=safetensors",
        ...(adapter === undefined
          ? []
          : [
              "--enable-lora",
              "--max-loras=1",
              `--max-lora-rank=${vllmRank(adapter.facts.rank) ?? adapter.facts.rank}`,
              `--lora-modules=${namedFolder(adapter)}`,
              ...templateArgument(adapter)
            ]),
        // Otherwise requests with tools may use a different template (`resolve_chat_template`).
        ...(chatTemplate === undefined ? [] : [writtenArgument(chatTemplate)]),
        // Shorter than the rest of the pod's grace period after the endpoint was drained.
        "--shutdown-timeout=8",
        "--disable-uvicorn-access-log",
        "--uvicorn-log-level=warning",
        "--disable-fastapi-docs",
        "--fingerprint-mode=none",
        "--enable-prompt-tokens-details",
        "--allowed-media-domains=none.invalid",
        // vLLM keeps this cache twice in host memory. The default of 4 GiB would exceed the memory request of the pod.
        ...(vllm.imageInput?.(config, flags) == null ? [] : ["--mm-processor-cache-gb=0.5"]),
        ...chosen.args
      ],
      env: {
        ...chosen.env,
        VLLM_PLUGINS: "",
        VLLM_DO_NOT_TRACK: "1",
        VLLM_LOGGING_COLOR: "0",
        VLLM_SNAPSHOT: "0",
        VLLM_MEDIA_URL_ALLOW_REDIRECTS: "0",
        VLLM_ENGINE_READY_TIMEOUT_S: String(bootSeconds),
        VLLM_CACHE_ROOT: `${cachePath}/vllm`
      },
      port: 8000,
      // The port is closed until vLLM is ready. `/health` also answers if the engine hangs; `/v1/models` at least
      // involves its server.
      probes: {
        startup: { path: "/health", periodSeconds: 5, timeoutSeconds: 5 },
        readiness: { path: "/v1/models", periodSeconds: 5, timeoutSeconds: 5 }
      },
      group: 0
    }
  },
  offers: ({ engine_flags }, simulated) => ({
    scoring: { prompt_logprobs: 0 },
    prefixCache: engine_flags?.enable_prefix_caching !== false,
    seeds: true,
    // Templates that accept parts get each text as a part (`parse_chat_message_content`).
    ...(simulated ? {} : { ownPrompts: vllmOwnPrompts, templated: { between: "\n", tool: {}, asParts: true } })
  }),
  measured: ({ log, metrics }): Measured => {
    const [weights, seconds] = lastHit(log, vllmLines.weights)
    const [consumed, activation, graphs] = lastHit(log, vllmLines.account)
    const [available] = lastHit(log, vllmLines.cacheAvailable)
    const [inUse] = lastHit(log, vllmLines.cacheInUse)
    const [tokens, , concurrency] = lastHit(log, vllmLines.cacheTokens)
    const [graphSeconds, graphsTook] = lastHit(log, vllmLines.graphs)
    const [boot] = lastHit(log, vllmLines.boot)
    // With data parallelism each engine has its own series and its own pool.
    const label = (name: string) => sumOf(metricLabels(metrics, vllmMetrics.cacheConfig, name).map(numberOf))
    const weightsBytes = bytesOfGib(weights)
    const parts = [consumed, activation, graphs].map(bytesOfGib)
    const used = parts.reduce<number | null>((sum, part) => (sum === null || part === null ? null : sum + part), 0)
    return {
      weights_bytes: weightsBytes,
      kv_cache_bytes: bytesOfGib(available ?? inUse),
      kv_cache_tokens: label(vllmCacheLabels.tokens) ?? numberOf(tokens),
      overhead_bytes: used === null || weightsBytes === null ? null : Math.max(0, used - weightsBytes),
      max_concurrency: label(vllmCacheLabels.concurrency) ?? numberOf(concurrency),
      load_seconds: numberOf(seconds),
      activation_bytes: bytesOfGib(activation),
      graph_bytes: bytesOfGib(graphsTook ?? graphs),
      graph_seconds: numberOf(graphSeconds),
      boot_seconds: numberOf(boot)
    }
  },
  weightsLoaded: vllmLines.weights,
  bootFailure: (log) => startFailureOf(log, vllmStartFailures, version)
}
