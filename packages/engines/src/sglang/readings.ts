/**
 * Lines of SGLang's log that contain figures. `{}` matches a number, `{*}` matches any text. SGLang writes GB for GiB.
 */
export const sglangLines = {
  weights: "Load weight end. elapsed={} s, {*}mem usage={} GB",
  freeBefore: "Load weight begin. avail mem={} GB",
  cacheOfTwo: "#tokens: {}, K size: {} GB, V size: {} GB",
  cacheOfOne: "#tokens: {}, KV size: {} GB",
  // One line each for decode, prefill and draft graphs, from every rank.
  graphs: "Capture {*} CUDA graph end. {*}elapsed={} s, mem usage={} GB",
  limits: "max_total_num_tokens={}, {*}context_len={}, {*}={} GB"
}

/** Metrics of SGLang that Seatrial reads. */
export const sglangMetrics = {
  running: "sglang:num_running_reqs",
  waiting: "sglang:num_queue_reqs",
  promptTokens: "sglang:prompt_tokens_total",
  generatedTokens: "sglang:generation_tokens_total",
  realtimeTokens: "sglang:realtime_tokens_total",
  preempted: "sglang:num_retracted_requests_total",
  cacheUse: "sglang:token_usage",
  tokens: "sglang:max_total_num_tokens",
  context: "sglang:context_len",
  weights: "sglang:weight_memory_usage_gb",
  cache: "sglang:kv_cache_memory_usage_gb",
  graphs: "sglang:graph_memory_usage_gb",
  boot: "sglang:startup_time_seconds"
}
