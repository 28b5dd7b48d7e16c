import type { Booted } from "../src/Boot.ts"

/** The metrics of the reference engine under SGLang's names, in Prometheus' text format. `weights`: in GiB. */
export const sglangMetrics = ({ cacheConfig, engine, metrics }: Booted, weights: number): string => {
  const { kvUsage, running, waiting } = engine.scheduler.gauges()
  const name = engine.settings.servedModelNames[0].replaceAll("\\", "\\\\").replaceAll('"', '\\"')
  const labels = `model_name="${name}",engine_type="unified"`
  const tokens = Number(cacheConfig.kv_cache_size_tokens ?? 0)
  const finished = Object.values(metrics.finished).reduce((sum, count) => sum + count, 0)
  const single = (metric: string, type: "gauge" | "counter", value: number) => [`# TYPE ${metric} ${type}`, `${metric}{${labels}} ${value}`]
  const histogram = (metric: string, values: { readonly render: (name: string, labels: string) => string }) => [
    `# TYPE ${metric} histogram`,
    values.render(metric, labels)
  ]
  return `${[
    ...single("sglang:num_running_reqs", "gauge", running),
    ...single("sglang:num_queue_reqs", "gauge", waiting),
    ...single("sglang:token_usage", "gauge", kvUsage),
    ...single("sglang:kv_used_tokens", "gauge", Math.round(kvUsage * tokens)),
    ...single("sglang:max_total_num_tokens", "gauge", tokens),
    ...single("sglang:page_size", "gauge", engine.settings.blockSize),
    ...single("sglang:context_len", "gauge", engine.maxModelLen),
    ...single("sglang:weight_memory_usage_gb", "gauge", weights),
    ...single("sglang:kv_cache_memory_usage_gb", "gauge", Number(cacheConfig.kv_cache_memory_bytes ?? 0) / 2 ** 30),
    "# TYPE sglang:realtime_tokens_total counter",
    ...[
      ["prefill_compute", metrics.computedTokens],
      ["prefill_cache", metrics.promptTokens - metrics.computedTokens],
      ["decode", metrics.generationTokens]
    ].map(([mode, value]) => `sglang:realtime_tokens_total{${labels},mode="${mode}"} ${value}`),
    // Counted once a request is over.
    ...single("sglang:prompt_tokens_total", "counter", metrics.ended.prompt),
    ...single("sglang:generation_tokens_total", "counter", metrics.ended.generation),
    ...single("sglang:cached_tokens_total", "counter", metrics.cachedTokens),
    ...single("sglang:num_requests_total", "counter", finished),
    ...single("sglang:num_aborted_requests_total", "counter", metrics.finished.abort),
    ...single("sglang:num_retracted_requests_total", "counter", metrics.preemptions),
    ...histogram("sglang:time_to_first_token_seconds", metrics.timeToFirstToken),
    ...histogram("sglang:inter_token_latency_seconds", metrics.interToken),
    ...histogram("sglang:e2e_request_latency_seconds", metrics.endToEnd),
    ...histogram("sglang:queue_time_seconds", metrics.queued)
  ].join("\n")}\n`
}
