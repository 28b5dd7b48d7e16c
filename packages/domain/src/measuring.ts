import type { EngineWire } from "./engineWire.ts"
import type { Fit } from "./fit.ts"
import { shapeOf } from "./kvCache.ts"
import type { ModelConfig } from "./repository.ts"
import type { Measured } from "./trial.ts"

/** Beyond so much the arithmetic of the fit does not know the architecture. */
const mostApart = 0.02

/** What engines round to in their logs: a hundredth of a GiB. */
const roundedBytes = 0.005 * 2 ** 30

/** Tokens of a block, of which a pool holds whole ones. */
const blockTokens = 64

/**
 * Bytes of the KV cache a token, as the engine's figures have it and by the exact formula, and whether these are more than 2% apart; null where they cannot be compared:
 * where either was not told, where rounding hides as much, or where a token has no one size (windows and states; vLLM counts as many tokens as sequences of `max_context` fit,
 * SGLang those of one of its pools).
 */
export const kvLayoutOf = (
  told: Pick<Measured, "kv_cache_bytes" | "kv_cache_tokens">,
  start: {
    readonly config: ModelConfig
    readonly wire: Pick<EngineWire, "countsCacheInSequences">
    readonly fit: Pick<Fit, "kv_bytes_per_token" | "max_context">
    /** Bytes of one sequence of `max_context` tokens; absent where an earlier version did not keep them. */
    readonly sequenceBytes?: number | undefined
  }
): NonNullable<Measured["kv_layout"]> | null => {
  const { kv_cache_bytes: bytes, kv_cache_tokens: tokens } = told
  if (bytes === null || tokens === null || bytes <= 0 || tokens <= 0) return null
  const whole = shapeOf(start.config).layers.every(({ kind }) => kind === "full" || kind === "latent")
  const bySequence = start.wire.countsCacheInSequences && start.sequenceBytes !== undefined ? start.sequenceBytes / start.fit.max_context : 0
  const exact = whole ? start.fit.kv_bytes_per_token : bySequence
  const blur = roundedBytes / bytes + blockTokens / tokens
  if (exact <= 0 || blur > mostApart) return null
  const perToken = bytes / tokens
  return { told: perToken, exact, differs: Math.abs(perToken / exact - 1) > mostApart + blur }
}

/** What the fit had said of the KV cache, and what the engine then had; bytes of one GPU. */
export interface FitError {
  readonly low: number
  readonly high: number
  readonly measured: number
  /** Whether what was measured lies within what had been said. */
  readonly inside: boolean
  /** How far it lies from the middle of that, as a share of what was measured. */
  readonly error: number
}

/** How good the estimate was; null where the engine did not tell. */
export const fitErrorOf = (fit: Pick<Fit, "headroom_bytes" | "kv_cache_bytes" | "verdict">, told: Pick<Measured, "kv_cache_bytes">): FitError | null => {
  const measured = told.kv_cache_bytes
  if (measured === null || measured <= 0) return null
  const width = fit.headroom_bytes.high - fit.headroom_bytes.low
  // A fit shows the KV cache that is sure, or the one that it needs to be lucky for: with its bounds also where that is `tight` for another reason.
  const low = fit.verdict === "fits" || fit.headroom_bytes.low >= 0 ? fit.kv_cache_bytes : fit.kv_cache_bytes - width
  const high = low + width
  return { low, high, measured, inside: measured >= low && measured <= high, error: (measured - (low + high) / 2) / measured }
}
