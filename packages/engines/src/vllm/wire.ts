import { adapterName, type EngineWire } from "@seatrial/domain"
import { vllmMetrics } from "./readings.ts"

/** The metrics of vLLM that the gateway reads. The reference engine reports the same ones. */
export const vllmGatewayMetrics: EngineWire["metrics"] = {
  prefix: "vllm:",
  figures: new Map([
    ["num_requests_running", "running"],
    ["num_requests_waiting", "waiting"],
    ["kv_cache_usage_perc", "cacheUse"],
    ["prompt_tokens_total", "tokens"],
    ["generation_tokens_total", "tokens"]
  ])
}

/** How the grammar library of vLLM and SGLang (llguidance) names keywords that it cannot enforce. */
export const grammarKeywords = /Unimplemented keys: \[(?<keywords>[^\]]{1,500})\]/

/** The metrics of vLLM that a trial reads. The reference engine reports the same ones. */
export const vllmTrialMetrics: EngineWire["trialMetrics"] = {
  requests: [{ name: vllmMetrics.running }, { name: vllmMetrics.waiting }],
  waiting: [{ name: vllmMetrics.waiting }],
  cacheUse: [{ name: vllmMetrics.cacheUse }],
  generatedTokens: [{ name: `${vllmMetrics.generatedTokens}_total` }],
  preemptions: [{ name: `${vllmMetrics.preempted}_total` }],
  // vLLM counts the tokens of a prompt only once all of it is processed; until then its KV cache usage grows.
  work: [
    { name: `${vllmMetrics.promptTokens}_total` },
    { name: `${vllmMetrics.generatedTokens}_total` },
    { name: `${vllmMetrics.preempted}_total` },
    { name: vllmMetrics.cacheUse }
  ],
  // Some architectures turn the prefix cache off regardless of the flag.
  cacheConfig: { name: vllmMetrics.cacheConfig, prefixCacheOff: 'enable_prefix_caching="False"', blockSizeLabel: "block_size" }
}

export const vllmWire: EngineWire = {
  livenessPath: "/health",
  metrics: vllmGatewayMetrics,
  trialMetrics: vllmTrialMetrics,
  errorWords: {
    promptTooLong: /context length|max_model_len|too long/i,
    noRoom: null,
    schemaRefused: /JSON schema contains features/,
    refusedKeywords: grammarKeywords
  },
  // Its argument parser reads a name with a leading hyphen as an option.
  acceptsLeadingHyphen: false,
  acceptsUnnamedModel: true,
  answersWithServedName: true,
  adapterModel: adapterName,
  unsaltedPaths: new Set(),
  requestIdField: null,
  reasoningField: "reasoning",
  recountsUsageWithReasoning: true,
  streamsCachedTokensOfFirstPrompt: true,
  streamsResponseLogprobs: true,
  overridesSamplingDefaults: false,
  readsGenerationConfig: true,
  countsCacheInSequences: true
}
