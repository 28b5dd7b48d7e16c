/** Lines of vLLM's log that contain figures. `{}` matches a number. */
export const vllmLines = {
  weights: "Model loading took {} GiB memory and {} seconds",
  account: "Actual usage is {} GiB for consumed memory (weights + non-torch), {} GiB for peak activation, and {} GiB for CUDAGraph memory",
  cacheAvailable: "Available KV cache memory: {} GiB",
  cacheInUse: "Current kv cache memory in use is {} GiB",
  graphs: "Graph capturing finished in {} secs, took {} GiB",
  boot: "init engine (profile, create kv cache, warmup model) took {} s",
  cacheTokens: "KV cache size: {} tokens, Maximum concurrency for {} tokens per request: {}x"
}

/** Metrics of vLLM that Seatrial reads. On the wire counters also end in `_total`. */
export const vllmMetrics = {
  cacheConfig: "vllm:cache_config_info",
  running: "vllm:num_requests_running",
  waiting: "vllm:num_requests_waiting",
  preempted: "vllm:num_preemptions",
  promptTokens: "vllm:prompt_tokens",
  generatedTokens: "vllm:generation_tokens",
  cacheUse: "vllm:kv_cache_usage_perc"
}

/** Labels of `vllm:cache_config_info` that Seatrial reads. */
export const vllmCacheLabels = { tokens: "kv_cache_size_tokens", concurrency: "kv_cache_max_concurrency" }
