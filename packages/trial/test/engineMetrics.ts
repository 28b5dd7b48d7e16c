import type { TrialMetrics } from "@seatrial/domain"

/** The metrics of an engine that reports them as vLLM does. */
export const vllmMetrics: TrialMetrics = {
  requests: [{ name: "vllm:num_requests_running" }, { name: "vllm:num_requests_waiting" }],
  waiting: [{ name: "vllm:num_requests_waiting" }],
  cacheUse: [{ name: "vllm:kv_cache_usage_perc" }],
  generatedTokens: [{ name: "vllm:generation_tokens_total" }],
  preemptions: [{ name: "vllm:num_preemptions_total" }],
  work: [{ name: "vllm:prompt_tokens_total" }, { name: "vllm:generation_tokens_total" }, { name: "vllm:kv_cache_usage_perc" }],
  cacheConfig: { name: "vllm:cache_config_info", prefixCacheOff: 'enable_prefix_caching="False"', blockSizeLabel: "block_size" }
}
