import { adapterName, type EngineWire } from "@seatrial/domain"

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

export const vllmWire: EngineWire = {
  livenessPath: "/health",
  metrics: vllmGatewayMetrics,
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
