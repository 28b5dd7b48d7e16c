import { type ServingSettings, sketchScale, slotsOf } from "@seatrial/domain"

/** One step of a workload: this many streams, each with one request at a time. Times in milliseconds. */
export interface WorkloadStep {
  readonly concurrency: number
  /**
   * The step runs until both minimums are reached, at most for `mostMillis`, and once for `prolongMillis` more if its
   * throughput is not steady.
   */
  readonly leastRequests: number
  readonly leastMillis: number
  readonly mostMillis: number
  readonly prolongMillis: number
}

export interface Workload {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly seed: number
  /** The budget of the host class in seconds, and the share of the full times that it allows. */
  readonly budgetSeconds: number
  readonly scale: number
  readonly blockMillis: number
  /** Milliseconds that current answers may still take after a step, independent of the scale. */
  readonly drainMillis: number
  readonly steps: ReadonlyArray<WorkloadStep>
}

const seed = 20_261_121

/** The budget in seconds for which the full workload is designed. */
export const fullBudget = 300

interface Size {
  readonly input: number
  readonly output: number
  readonly streams: number
}

/**
 * With less than a minute the workload is reduced, and with less than ten seconds it is minimal: shorter prompts, few
 * streams. The token counts in its figures show that.
 */
const sizeFor = (budget: number): Size =>
  budget < 10 ? { input: 64, output: 16, streams: 4 } : budget < 60 ? { input: 128, output: 32, streams: 8 } : { input: 1_024, output: 256, streams: 64 }

/**
 * The requests of the benchmark `seatrial-bench` 1 for a budget in seconds: 1,024 tokens in and 256 out (half and an
 * eighth of a context below 1,536), at concurrency 1, S/4 and S, where S is the capacity of the KV cache and of the
 * engine's slots, at most 64. With 300 seconds: single requests for at least 5 requests and 20 s, the other steps for
 * 30 requests and 40 s, each at most 75 s and once 30 s more. A smaller budget scales these times by its share of 300
 * s; a larger one does not.
 */
export const workload = (budget: number, maxContext: number, kvTokens: number | null, settings: Pick<ServingSettings, "engine_flags">): Workload => {
  const size = sizeFor(budget)
  const fits = maxContext >= 1_536 ? size : { input: Math.max(1, Math.floor(maxContext / 2)), output: Math.max(2, Math.floor(maxContext / 8)) }
  const inputTokens = Math.min(size.input, fits.input)
  const outputTokens = Math.min(size.output, fits.output)
  const most = Math.min(
    size.streams,
    Math.floor((kvTokens ?? Number.POSITIVE_INFINITY) / (inputTokens + outputTokens)),
    slotsOf(settings) ?? Number.POSITIVE_INFINITY
  )
  const levels = [...new Set([1, Math.max(1, Math.floor(most / 4)), Math.max(1, most)])]
  const scale = Math.min(1, budget / fullBudget)
  const step = (concurrency: number): WorkloadStep => ({
    concurrency,
    leastRequests: concurrency === 1 ? 5 : 30,
    leastMillis: (concurrency === 1 ? 20_000 : 40_000) * scale,
    mostMillis: 75_000 * scale,
    prolongMillis: scale < sketchScale ? 0 : 30_000 * scale
  })
  return { inputTokens, outputTokens, seed, budgetSeconds: budget, scale, blockMillis: 5_000 * scale, drainMillis: 30_000, steps: levels.map(step) }
}
