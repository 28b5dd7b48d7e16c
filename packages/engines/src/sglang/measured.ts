import type { Measured } from "@seatrial/domain"
import { allHits, bytesOfGib, lastHit, metricValue, metricValues, numberOf, sumOf } from "../engineLog.ts"
import { sglangLines, sglangMetrics } from "./readings.ts"

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

/** What a container of SGLang reported. */
interface Output {
  readonly metrics: string
  readonly log: string
}

const gaugeBytes = (metrics: string, name: string): number | null => {
  const value = metricValue(metrics, name)
  return value === null ? null : Math.round(value * 2 ** 30)
}

const weightsBytesOf = ({ log, metrics }: Output): number | null =>
  bytesOfGib(lastHit(log, sglangLines.weights)[1]) ?? gaugeBytes(metrics, sglangMetrics.weights)

/** The bytes of the KV cache by the log: latents, or keys and values. */
const loggedCacheBytes = (log: string): number | null => {
  const [, latents] = lastHit(log, sglangLines.cacheOfOne)
  const [, keys, values] = lastHit(log, sglangLines.cacheOfTwo)
  if (latents !== undefined) return bytesOfGib(latents)
  return keys === undefined ? null : (bytesOfGib(keys) ?? 0) + (bytesOfGib(values) ?? 0)
}

const cacheBytesOf = ({ log, metrics }: Output): number | null => gaugeBytes(metrics, sglangMetrics.cache) ?? loggedCacheBytes(log)

const cacheTokensOf = ({ log, metrics }: Output): number | null => {
  const [total] = lastHit(log, sglangLines.limits)
  const [latentPool] = lastHit(log, sglangLines.cacheOfOne)
  const [pool] = lastHit(log, sglangLines.cacheOfTwo)
  return metricValue(metrics, sglangMetrics.tokens) ?? numberOf(total ?? latentPool ?? pool)
}

/** The memory that a start took in addition to weights and KV cache, in bytes. */
const overheadBytes = (log: string, weightsBytes: number | null, cacheBytes: number | null): number | null => {
  const before = bytesOfGib(lastHit(log, sglangLines.freeBefore)[0])
  const after = bytesOfGib(lastHit(log, sglangLines.limits)[2])
  if (before === null || after === null || weightsBytes === null || cacheBytes === null) return null
  return Math.max(0, before - weightsBytes - cacheBytes - after)
}

/** How many sequences of the longest context fit into the KV cache, to two decimals. */
const concurrencyOf = ({ log, metrics }: Output, tokens: number | null): number | null => {
  const length = metricValue(metrics, sglangMetrics.context) ?? numberOf(lastHit(log, sglangLines.limits)[1])
  return tokens === null || length === null || length === 0 ? null : Math.round((100 * tokens) / length) / 100
}

/** Reads the figures of a start of SGLang. */
export const sglangMeasured = (output: Output): Measured => {
  const { log, metrics } = output
  const weightsBytes = weightsBytesOf(output)
  const cacheBytes = cacheBytesOf(output)
  const tokens = cacheTokensOf(output)
  const graphs = graphsOf(log)
  const graphGib = sumOf(metricsOfRank(metrics, sglangMetrics.graphs)) ?? graphs?.gib ?? null
  return {
    weights_bytes: weightsBytes,
    kv_cache_bytes: cacheBytes,
    kv_cache_tokens: tokens,
    overhead_bytes: overheadBytes(log, weightsBytes, cacheBytes),
    max_concurrency: concurrencyOf(output, tokens),
    load_seconds: numberOf(lastHit(log, sglangLines.weights)[0]),
    // SGLang does not report the peak of its activations.
    activation_bytes: null,
    graph_bytes: graphGib === null ? null : Math.round(graphGib * 2 ** 30),
    graph_seconds: graphs?.seconds ?? null,
    boot_seconds: metricValue(metrics, sglangMetrics.boot)
  }
}
