import type { EngineLoad, FlagIssue, KvCacheDtype, Measured } from "@seatrial/domain"
import { namedFolder, templateArgument } from "../adapterFiles.ts"
import type { EngineAdapter, EngineContainer } from "../EngineAdapter.ts"
import { renderFlags } from "../EngineFlag.ts"
import { allHits, bytesOfGib, lastHit, metricValue, metricValues, numberOf, startFailureOf, sumOf } from "../engineLog.ts"
import { alwaysDenied, flagIssueOf } from "../flagIssue.ts"
import { imageLimits, sees, servedImages } from "../images.ts"
import { sglangOwnPrompts } from "../ownPrompts.ts"
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
import { sglangAdapters } from "./adapters.ts"
import { sglangFlags } from "./flags.ts"
import { registered } from "./generated/architectures.ts"
import { commandLine } from "./generated/commandLine.ts"
import { sglangLimits, sglangMemory } from "./memory.ts"
import { sglangCacheIssue, sglangModelIssue } from "./modelIssue.ts"
import { sglangQuantization } from "./quantizationRules.ts"
import { sglangLines, sglangMetrics } from "./readings.ts"
import { sglangStartFailures } from "./startFailures.ts"
import { sglangStartIssue } from "./startIssue.ts"
import { templateByName } from "./templateByName.ts"
import { sglangWire } from "./wire.ts"

const version = "sglang-0.5.23"
const table = { version, flags: sglangFlags, denied: alwaysDenied, commandLine }

/** Total seconds and GiB of the graphs that the first rank captured; null if it captured none. */
const graphsOf = (log: string): { readonly seconds: number; readonly gib: number } | null => {
  // All ranks log the same figures. A start on one GPU logs no rank.
  const lines = log.split("\n").filter((line) => !/^\[[^\]]* (?:DP\d+ )?TP[1-9]/.test(line))
  const captured = allHits(lines.join("\n"), sglangLines.graphs).map(([seconds, gib]) => [numberOf(seconds), numberOf(gib)] as const)
  const [seconds, gib] = [sumOf(captured.map(([first]) => first)), sumOf(captured.map(([, second]) => second))]
  return seconds === null || gib === null ? null : { seconds, gib }
}

/** The values of all series of a metric that belong to the first rank. */
const metricsOfRank = (metrics: string, name: string): ReadonlyArray<number> => {
  const lines = metrics.split("\n").filter((line) => !/[{,]tp_rank="[1-9]\d*"/.test(line))
  return metricValues(lines.join("\n"), name)
}

/** SGLang does not know the name `fp8`. */
const cacheDtypes: Readonly<Record<KvCacheDtype, string>> = { auto: "auto", fp8: "fp8_e4m3", fp8_e4m3: "fp8_e4m3", fp8_e5m2: "fp8_e5m2" }

const loadIssue = (load: EngineLoad): FlagIssue | null => {
  const { card, config, flags } = load
  const issue = (flag: string, message: string): FlagIssue => ({ flag, message })
  const { chunk } = sglangLimits(load)
  const page = sglangMemory.blockTokens(load)
  if (chunk !== -1 && chunk % page !== 0) return issue("chunked_prefill_size", `chunked_prefill_size (${chunk}) must be a multiple of page_size (${page}).`)
  if (flags.quantization !== undefined && config.quantization !== "none") {
    return issue("quantization", `quantization requires a 16-bit checkpoint; this one is already ${config.quantization}.`)
  }
  const experts = flags.ep_size
  if (typeof experts === "number" && experts > 1 && config.shape !== undefined && config.shape.experts === null) {
    return issue("ep_size", `ep_size requires a mixture of experts; ${config.architecture} is not one.`)
  }
  if (typeof experts === "number" && card.gpu_count % experts !== 0) {
    return issue("ep_size", `ep_size (${experts}) must divide the ${card.gpu_count} GPUs of the host class.`)
  }
  if (flags.enable_strict_thinking === true && flags.reasoning_parser === undefined) {
    return issue("enable_strict_thinking", "enable_strict_thinking requires a reasoning_parser.")
  }
  if (flags.enable_deterministic_inference === true && flags.attention_backend === "trtllm_mha") {
    return issue("attention_backend", "enable_deterministic_inference requires fa3, fa4, flashinfer or triton.")
  }
  return sglangStartIssue(load)
}

/**
 * These paths need no key. Before it answers, SGLang turns the whole tensor into a list of Python numbers of 32 bytes
 * each (`get_weights_by_name` of `srt/models/llama.py`). The limit allows 1 GiB.
 */
const loadedTensors = { values: "/get_weights_by_name", checksum: "/weights_checker", mostValues: 2 ** 25 } as const
const dtypeOf = (flag: unknown) => (flag === "bfloat16" || flag === "float16" ? flag : "auto")

/** SGLang 0.5.23 from its official image. */
export const sglang: EngineAdapter = {
  runtime: "sglang",
  wire: sglangWire,
  needsGpu: true,
  version,
  names: "any",
  architectures: generating(registered),
  extendsContext: ({ rope }) => rope !== undefined,
  otherPurpose: (architecture) => otherPurpose(registered, architecture),
  quantizations: takenQuantizations(sglangQuantization),
  modelIssue: withStandIn(sglangQuantization.version, sglangModelIssue),
  cacheIssue: sglangCacheIssue,
  kvCacheDtypes: new Set(["auto", "fp8", "fp8_e4m3", "fp8_e5m2"]),
  memory: sglangMemory,
  served: servedContract({
    toolCalls: ["deepseek_v3", "glm45", "gpt_oss", "hermes", "kimi_k2", "lfm2", "llama3_json", "minimax_m2", "mistral", "qwen3_coder"],
    toolCalling: {
      tool_choice: { auto: true, required: true, named: true, none: true },
      parallel_calls: true,
      single_call: true,
      strict_arguments: true,
      tool_results: true
    },
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
  tokenizerIssue: standInTokenizerIssue,
  templateIssue,
  // The reference engine uses the template of the model.
  nameIssue: (repo, config, simulated) => (simulated ? null : templateByName(sglangQuantization.version, repo, config)),
  flagIssue: (given) => flagIssueOf(table, given),
  loadIssue,
  longestContext: standInContext,
  chosenContext: chosenStandInContext,
  chosenFlags: (load, { chat_template: chatTemplate, refused_sampling: refusedSampling }) => {
    const { config, flags } = load
    // For some models SGLang enables image input only on request.
    const images =
      flags.limit_mm_data_per_request === undefined && flags.enable_multimodal === undefined && sees(config, chatTemplate)
        ? { enable_multimodal: true, limit_mm_data_per_request: { ...imageLimits, audio: 0 } }
        : {}
    const { chunk, fraction, graphSequences, sequences } = sglangLimits({ ...load, flags: { ...flags, ...images } })
    const { reasoning, toolCalls } = parsersFor("sglang", load.config.architecture, chatTemplate)
    return {
      max_running_requests: sequences,
      chunked_prefill_size: chunk,
      mem_fraction_static: Math.min(0.95, Math.max(0.5, fraction)),
      cuda_graph_max_bs_decode: graphSequences,
      // If tensor parallelism would cut a group of quantized values, distribute whole experts instead.
      ...(load.flags.ep_size === undefined && splitIssue(load, false) !== null && splitIssue(load, true) === null ? { ep_size: load.card.gpu_count } : {}),
      ...(reasoning === null ? {} : { reasoning_parser: reasoning }),
      ...(toolCalls === null ? {} : { tool_call_parser: toolCalls }),
      // Otherwise SGLang refuses every request that leaves out a sampling parameter whose value in the repository is
      // invalid.
      ...(refusedSampling === true ? { sampling_defaults: "openai" } : {}),
      ...images
    }
  },
  container: ({ adapter, bootSeconds, cachePath, commit, config, hostClass, modelPath, servedNames, settings }): EngineContainer => {
    const flags = settings.engine_flags ?? {}
    const { chunk, fraction, graphSequences, sequences } = sglangLimits({ card: hostClass, config, flags })
    const overrides = yarnOverrides(config, settings)
    const chosen = renderFlags(sglangFlags, {
      ...flags,
      max_running_requests: sequences,
      chunked_prefill_size: chunk,
      mem_fraction_static: Math.min(0.95, Math.max(0.5, fraction)),
      cuda_graph_max_bs_decode: graphSequences
    })
    return {
      command: ["python3", "-m", "sglang.launch_server"],
      args: [
        `--model-path=${modelPath}`,
        `--served-model-name=${servedNames[0] ?? modelPath}`,
        "--host=$(POD_IP)",
        "--port=8000",
        `--tp-size=${hostClass.gpu_count}`,
        "--pp-size=1",
        `--context-length=${settings.max_context}`,
        `--kv-cache-dtype=${cacheDtypes[settings.kv_cache_dtype]}`,
        ...(overrides === null ? [] : [`--json-model-override-args=${overrides}`]),
        "--load-format=safetensors",
        // SGLang reports this value, and the trial compares it with the commit.
        ...(commit === undefined ? [] : [`--weight-version=${commit}`]),
        ...(adapter === undefined
          ? []
          : [
              "--enable-lora",
              // One more than it serves, because requests without an adapter, such as health checks, occupy a slot.
              "--max-loras-per-batch=2",
              `--max-lora-rank=${adapter.facts.rank}`,
              `--lora-paths=${namedFolder(adapter)}`,
              // Otherwise unknown weights only cause a warning.
              "--lora-strict-loading",
              ...templateArgument(adapter)
            ]),
        // If there are several templates, SGLang takes the first one (`_select_named_template`).
        "--hf-chat-template-name=default",
        "--log-level-http=warning",
        "--enable-metrics",
        "--enable-cache-report",
        "--allowed-media-domains=none.invalid",
        ...chosen.args
      ],
      env: {
        ...chosen.env,
        SGLANG_PLUGINS: "",
        DISABLE_OPENAPI_DOC: "1",
        SGLANG_WARMUP_TIMEOUT: String(bootSeconds),
        SGLANG_CACHE_DIR: `${cachePath}/sglang`
      },
      // The port that the network policy opens for the gateway and the operator.
      port: 8000,
      // `/health` generates a token, which takes between 1 and 20 seconds. After the first answer `/ready` is cheap.
      probes: {
        startup: { path: "/health", periodSeconds: 10, timeoutSeconds: 25 },
        readiness: { path: "/ready", periodSeconds: 5, timeoutSeconds: 5 }
      },
      group: 2000
    }
  },
  offers: ({ engine_flags }, simulated) => ({
    // SGLang returns log-probabilities of a prompt only if the prompt is echoed. The reference engine only supports
    // `prompt_logprobs`.
    scoring: { echo: true, logprobs: 1, ...(simulated ? { prompt_logprobs: 0 } : {}) },
    prefixCache: engine_flags?.disable_radix_cache !== true,
    unsalted: [...sglangWire.unsaltedPaths],
    // The sampler uses seeds only in deterministic mode.
    seeds: simulated || engine_flags?.enable_deterministic_inference === true,
    // SGLang reserves one token of the longest context, and limits an answer to one token less than the rest
    // (`max_req_len`, `init_req_max_new_tokens`).
    unfilled: 2,
    // The parts of a message are joined by blanks (`process_content_for_template_format`), and templates get all
    // members of a tool's class (`Tool.model_dump`).
    ...(simulated ? {} : { ownPrompts: sglangOwnPrompts(engine_flags?.tool_call_parser), templated: { between: " ", tool: { defer_loading: null } } }),
    weightVersion: "/model_info",
    ...(engine_flags?.quantization === undefined ? { loadedTensors: { ...loadedTensors, type: dtypeOf(engine_flags?.dtype) } } : {})
  }),
  measured: ({ log, metrics }): Measured => {
    const [seconds, weights] = lastHit(log, sglangLines.weights)
    const [pool, keys, values] = lastHit(log, sglangLines.cacheOfTwo)
    const [latentPool, latents] = lastHit(log, sglangLines.cacheOfOne)
    const [total, context, left] = lastHit(log, sglangLines.limits)
    const gaugeBytes = (name: string) => {
      const value = metricValue(metrics, name)
      return value === null ? null : Math.round(value * 2 ** 30)
    }
    const weightsBytes = bytesOfGib(weights) ?? gaugeBytes(sglangMetrics.weights)
    const cacheBytes =
      gaugeBytes(sglangMetrics.cache) ?? bytesOfGib(latents) ?? (keys === undefined ? null : (bytesOfGib(keys) ?? 0) + (bytesOfGib(values) ?? 0))
    const tokens = metricValue(metrics, sglangMetrics.tokens) ?? numberOf(total ?? latentPool ?? pool)
    const length = metricValue(metrics, sglangMetrics.context) ?? numberOf(context)
    const [before] = lastHit(log, sglangLines.freeBefore)
    const graphs = graphsOf(log)
    const graphGib = sumOf(metricsOfRank(metrics, sglangMetrics.graphs)) ?? graphs?.gib ?? null
    const [started, free] = [bytesOfGib(before), bytesOfGib(left)]
    return {
      weights_bytes: weightsBytes,
      kv_cache_bytes: cacheBytes,
      kv_cache_tokens: tokens,
      overhead_bytes:
        started === null || free === null || weightsBytes === null || cacheBytes === null ? null : Math.max(0, started - weightsBytes - cacheBytes - free),
      max_concurrency: tokens === null || length === null || length === 0 ? null : Math.round((100 * tokens) / length) / 100,
      load_seconds: numberOf(seconds),
      // SGLang does not report the peak of its activations.
      activation_bytes: null,
      graph_bytes: graphGib === null ? null : Math.round(graphGib * 2 ** 30),
      graph_seconds: graphs?.seconds ?? null,
      boot_seconds: metricValue(metrics, sglangMetrics.boot)
    }
  },
  weightsLoaded: sglangLines.weights,
  bootFailure: (log) => startFailureOf(log, sglangStartFailures, version)
}
