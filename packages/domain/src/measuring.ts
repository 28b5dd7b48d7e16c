import type { EngineWire } from "./engineWire.ts"
import type { Fit } from "./fit.ts"
import { shapeOf } from "./kvCache.ts"
import type { ModelConfig } from "./repository.ts"
import type { Measured } from "./trial.ts"

/** If the relative difference exceeds this, the fit's arithmetic does not match the architecture. */
const maxRelativeDifference = 0.02

/** Rounding error of engine logs: half of a hundredth of a GiB. */
const roundedBytes = 0.005 * 2 ** 30

/** Tokens per block. A pool holds complete blocks. */
const blockTokens = 64

/**
 * KV cache bytes per token by the engine's figures and by the exact formula, and whether they differ by more than 2%.
 * Null if they cannot be compared: a figure is missing, the rounding error is too large, or a token has no fixed size
 * (windows and states; vLLM then counts the tokens of as many sequences of `max_context` as fit, SGLang the tokens of
 * one of its pools).
 */
export const kvLayoutOf = (
  measured: Pick<Measured, "kv_cache_bytes" | "kv_cache_tokens">,
  start: {
    readonly config: ModelConfig
    readonly wire: Pick<EngineWire, "countsCacheInSequences">
    readonly fit: Pick<Fit, "kv_bytes_per_token" | "max_context">
    /** Bytes of one sequence of `max_context` tokens; absent in records of earlier versions. */
    readonly sequenceBytes?: number | undefined
  }
): NonNullable<Measured["kv_layout"]> | null => {
  const { kv_cache_bytes: bytes, kv_cache_tokens: tokens } = measured
  if (bytes === null || tokens === null || bytes <= 0 || tokens <= 0) return null
  const hasFixedTokenSize = shapeOf(start.config).layers.every(({ kind }) => kind === "full" || kind === "latent")
  const bySequence = start.wire.countsCacheInSequences && start.sequenceBytes !== undefined ? start.sequenceBytes / start.fit.max_context : 0
  const exact = hasFixedTokenSize ? start.fit.kv_bytes_per_token : bySequence
  const blur = roundedBytes / bytes + blockTokens / tokens
  if (exact <= 0 || blur > maxRelativeDifference) return null
  const perToken = bytes / tokens
  return { reported: perToken, exact, differs: Math.abs(perToken / exact - 1) > maxRelativeDifference + blur }
}

/** The estimated and the measured KV cache, in bytes per GPU. */
export interface FitError {
  readonly low: number
  readonly high: number
  readonly measured: number
  /** Whether the measured size lies within the estimate. */
  readonly inside: boolean
  /** Distance of the measured size from the estimate's middle, as a share of the measured size. */
  readonly error: number
}

/** The accuracy of an estimate; null if the engine did not report the size. */
export const fitErrorOf = (fit: Pick<Fit, "headroom_bytes" | "kv_cache_bytes" | "verdict">, report: Pick<Measured, "kv_cache_bytes">): FitError | null => {
  const measured = report.kv_cache_bytes
  if (measured === null || measured <= 0) return null
  const width = fit.headroom_bytes.high - fit.headroom_bytes.low
  // A fit shows the KV cache at its lower bound, or at its upper bound if the model fits only by chance. A `tight`
  // verdict for another reason also shows the lower bound.
  const low = fit.verdict === "fits" || fit.headroom_bytes.low >= 0 ? fit.kv_cache_bytes : fit.kv_cache_bytes - width
  const high = low + width
  return { low, high, measured, inside: measured >= low && measured <= high, error: (measured - (low + high) / 2) / measured }
}
