/** Lines of SGLang's log that figures are read from: `{}` stands for a number, `{*}` for anything. What it calls GB is GiB. */
export const sglangLines = {
  weights: "Load weight end. elapsed={} s, {*}mem usage={} GB",
  freeBefore: "Load weight begin. avail mem={} GB",
  cacheOfTwo: "#tokens: {}, K size: {} GB, V size: {} GB",
  cacheOfOne: "#tokens: {}, KV size: {} GB",
  // Of its decoding, prefilling and drafting graphs one each, and each rank says it.
  graphs: "Capture {*} CUDA graph end. {*}elapsed={} s, mem usage={} GB",
  limits: "max_total_num_tokens={}, {*}context_len={}, {*}={} GB"
}

/** Metrics of SGLang that are read. */
export const sglangMetrics = {
  running: "sglang:num_running_reqs",
  waiting: "sglang:num_queue_reqs",
  preempted: "sglang:num_retracted_requests_total",
  cacheUse: "sglang:token_usage",
  tokens: "sglang:max_total_num_tokens",
  context: "sglang:context_len",
  weights: "sglang:weight_memory_usage_gb",
  cache: "sglang:kv_cache_memory_usage_gb",
  graphs: "sglang:graph_memory_usage_gb",
  boot: "sglang:startup_time_seconds"
}
