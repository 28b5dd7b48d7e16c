/** Why a request ended, in vLLM's categories. */
export type EndReason = "stop" | "length" | "abort" | "error"

const requestBuckets = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
const firstTokenBuckets = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560]
const interTokenBuckets = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]

class Histogram {
  private readonly bounds: ReadonlyArray<number>
  private readonly counts: Array<number>
  private sum = 0
  private count = 0

  constructor(bounds: ReadonlyArray<number>) {
    this.bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  observe(value: number) {
    this.sum += value
    this.count++
    const at = this.bounds.findIndex((bound) => value <= bound)
    if (at >= 0) this.counts[at] = (this.counts[at] ?? 0) + 1
  }

  render(name: string, labels: string): string {
    let running = 0
    const buckets = this.bounds.map((bound, i) => {
      running += this.counts[i] ?? 0
      return `${name}_bucket{${labels},le="${Number.isInteger(bound) ? `${bound}.0` : bound}"} ${running}`
    })
    return [
      ...buckets,
      `${name}_bucket{${labels},le="+Inf"} ${this.count}`,
      `${name}_sum{${labels}} ${this.sum}`,
      `${name}_count{${labels}} ${this.count}`
    ].join("\n")
  }
}

/** The state of the scheduler at a scrape. */
export interface Gauges {
  readonly running: number
  readonly waiting: number
  /** 0 to 1. */
  readonly kvUsage: number
}

const escaped = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

/** Counters and histograms with vLLM's names (`vllm/v1/metrics/loggers.py`). Times are in seconds. */
export class Metrics {
  promptTokens = 0
  /** Prompt tokens that were computed because they were not in the prefix cache. */
  computedTokens = 0
  generationTokens = 0
  /** Prompt and answer tokens of requests that ended without an abort. */
  readonly ended = { prompt: 0, generation: 0 }
  /** Prompt tokens that were found in the prefix cache. */
  cachedTokens = 0
  preemptions = 0
  rejections = 0
  readonly finished: Record<EndReason, number> = { stop: 0, length: 0, abort: 0, error: 0 }
  readonly timeToFirstToken = new Histogram(firstTokenBuckets)
  readonly interToken = new Histogram(interTokenBuckets)
  readonly perOutputToken = new Histogram(interTokenBuckets)
  readonly endToEnd = new Histogram(requestBuckets)
  readonly queued = new Histogram(requestBuckets)

  /** Returns the Prometheus text format. `cacheConfig`: the labels of `vllm:cache_config_info`. */
  render(model: string, gauges: Gauges, cacheConfig: Readonly<Record<string, string>>): string {
    const labels = `engine="0",model_name="${escaped(model)}"`
    const out: Array<string> = []
    const family = (name: string, type: "gauge" | "counter" | "histogram", help: string, ...lines: ReadonlyArray<string>) => {
      out.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines)
    }
    const single = (name: string, type: "gauge" | "counter", help: string, value: number) => family(name, type, help, `${name}{${labels}} ${value}`)
    const histogram = (name: string, help: string, values: Histogram) => family(name, "histogram", help, values.render(name, labels))
    const config = Object.entries({ ...cacheConfig, engine: "0" }).map(([key, value]) => `${key}="${escaped(value)}"`)
    single("vllm:num_requests_running", "gauge", "Requests in model execution batches.", gauges.running)
    single("vllm:num_requests_waiting", "gauge", "Requests waiting to be processed.", gauges.waiting)
    single("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", gauges.kvUsage)
    family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig.", `vllm:cache_config_info{${config.join(",")}} 1`)
    single("vllm:prompt_tokens_total", "counter", "Prefill tokens processed.", this.promptTokens)
    single("vllm:generation_tokens_total", "counter", "Generation tokens processed.", this.generationTokens)
    single("vllm:prompt_tokens_cached_total", "counter", "Prompt tokens taken from the prefix cache.", this.cachedTokens)
    single("vllm:prefix_cache_queries_total", "counter", "Prompt tokens that were looked up in the prefix cache.", this.promptTokens)
    single("vllm:prefix_cache_hits_total", "counter", "Prompt tokens that the prefix cache had.", this.cachedTokens)
    single("vllm:num_preemptions_total", "counter", "Preemptions by the engine.", this.preemptions)
    family(
      "vllm:request_success_total",
      "counter",
      "Finished requests.",
      ...Object.entries(this.finished).map(([reason, count]) => `vllm:request_success_total{${labels},finished_reason="${reason}"} ${count}`)
    )
    family(
      "vllm:admission_rejections_total",
      "counter",
      "Requests refused before they were queued.",
      `vllm:admission_rejections_total{${labels},reason="queue_full"} ${this.rejections}`
    )
    histogram("vllm:time_to_first_token_seconds", "Time to first token in seconds.", this.timeToFirstToken)
    histogram("vllm:inter_token_latency_seconds", "Inter-token latency in seconds.", this.interToken)
    histogram("vllm:request_time_per_output_token_seconds", "Mean time per output token of a request in seconds.", this.perOutputToken)
    histogram("vllm:e2e_request_latency_seconds", "End to end request latency in seconds.", this.endToEnd)
    histogram("vllm:request_queue_time_seconds", "Time in the queue in seconds.", this.queued)
    return `${out.join("\n")}\n`
  }
}
