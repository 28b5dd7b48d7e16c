import type { Measured } from "@seatrial/domain"
import { bytesOfGib, lastHit, metricLabels, numberOf, sumOf } from "../engineLog.ts"
import { vllmCacheLabels, vllmLines, vllmMetrics } from "./readings.ts"

/** Reads the figures of a start of vLLM. */
export const vllmMeasured = ({ log, metrics }: { readonly metrics: string; readonly log: string }): Measured => {
  const [weights, seconds] = lastHit(log, vllmLines.weights)
  const [consumed, activation, graphs] = lastHit(log, vllmLines.account)
  const [available] = lastHit(log, vllmLines.cacheAvailable)
  const [inUse] = lastHit(log, vllmLines.cacheInUse)
  const [tokens, , concurrency] = lastHit(log, vllmLines.cacheTokens)
  const [graphSeconds, graphsTook] = lastHit(log, vllmLines.graphs)
  const [boot] = lastHit(log, vllmLines.boot)
  // With data parallelism each engine has its own series and its own pool.
  const label = (name: string) => sumOf(metricLabels(metrics, vllmMetrics.cacheConfig, name).map(numberOf))
  const weightsBytes = bytesOfGib(weights)
  const parts = [consumed, activation, graphs].map(bytesOfGib)
  const used = parts.reduce<number | null>((sum, part) => (sum === null || part === null ? null : sum + part), 0)
  return {
    weights_bytes: weightsBytes,
    kv_cache_bytes: bytesOfGib(available ?? inUse),
    kv_cache_tokens: label(vllmCacheLabels.tokens) ?? numberOf(tokens),
    overhead_bytes: used === null || weightsBytes === null ? null : Math.max(0, used - weightsBytes),
    max_concurrency: label(vllmCacheLabels.concurrency) ?? numberOf(concurrency),
    load_seconds: numberOf(seconds),
    activation_bytes: bytesOfGib(activation),
    graph_bytes: bytesOfGib(graphsTook ?? graphs),
    graph_seconds: numberOf(graphSeconds),
    boot_seconds: numberOf(boot)
  }
}
