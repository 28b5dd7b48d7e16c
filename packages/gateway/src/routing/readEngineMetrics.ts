/** What an engine tells of itself; null what it does not tell. */
export interface EngineMetrics {
  readonly running: number | null
  readonly waiting: number | null
  /** Share of the cache that is in use, 0 to 1. */
  readonly cacheUse: number | null
  /** Moves with the tokens that go in or out. */
  readonly tokens: number | null
}

const sum = (one: number | null, other: number) => (one ?? 0) + other
const most = (one: number | null, other: number) => Math.max(one ?? 0, other)

type Name = keyof EngineMetrics

/** Metrics of vLLM, whose names the reference engine shares, and of SGLang. */
const names = new Map<string, readonly [Name, (one: number | null, other: number) => number]>([
  ["vllm:num_requests_running", ["running", sum]],
  ["vllm:num_requests_waiting", ["waiting", sum]],
  ["vllm:kv_cache_usage_perc", ["cacheUse", most]],
  ["vllm:prompt_tokens_total", ["tokens", sum]],
  ["vllm:generation_tokens_total", ["tokens", sum]],
  ["sglang:num_running_reqs", ["running", sum]],
  ["sglang:num_queue_reqs", ["waiting", sum]],
  ["sglang:token_usage", ["cacheUse", most]],
  // With each batch; the two after it only once a request is over.
  ["sglang:realtime_tokens_total", ["tokens", sum]],
  ["sglang:prompt_tokens_total", ["tokens", sum]],
  ["sglang:generation_tokens_total", ["tokens", sum]]
])

/** Each rank of a tensor-parallel engine tells the same. */
const otherRank = /[{,]tp_rank="[1-9]/

/** Reads the figures that routing goes by from Prometheus' text format. */
export const readEngineMetrics = (text: string): EngineMetrics => {
  const told: Record<Name, number | null> = { running: null, waiting: null, cacheUse: null, tokens: null }
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start)
    const end = newline === -1 ? text.length : newline
    // Most lines are comments and buckets of other metrics: they cost one look.
    if (text.startsWith("vllm:", start) || text.startsWith("sglang:", start)) {
      const line = text.slice(start, end).trimEnd()
      const found = names.get(line.slice(0, line.search(/[{ ]/)))
      const value = Number(line.slice(line.lastIndexOf(" ") + 1))
      if (found !== undefined && Number.isFinite(value) && !otherRank.test(line)) {
        const [name, join] = found
        told[name] = join(told[name], value)
      }
    }
    start = end + 1
  }
  return told
}
