import { type ServingSettings, sketchScale } from "@seatrial/domain"

/** One step of a workload: so many streams, each with one request at a time. Times in milliseconds. */
export interface WorkloadStep {
  readonly concurrency: number
  /** It goes on until both are reached, at most for `mostMillis`, and once for `prolongMillis` more where its throughput is not steady. */
  readonly leastRequests: number
  readonly leastMillis: number
  readonly mostMillis: number
  readonly prolongMillis: number
}

export interface Workload {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly seed: number
  /** Seconds that the host class gives, and the share of the full times that this allows. */
  readonly budgetSeconds: number
  readonly scale: number
  readonly blockMillis: number
  /** What an answer under way may still take when its step is over, whatever the scale, milliseconds. */
  readonly drainMillis: number
  readonly steps: ReadonlyArray<WorkloadStep>
}

const seed = 20_261_121

/** Seconds for which the full workload is made. */
export const fullBudget = 300

interface Size {
  readonly input: number
  readonly output: number
  readonly streams: number
}

/** Below a minute the workload is a sketch of the full one, and below ten seconds a glance: shorter prompts, few streams. Its figures say so by their token counts. */
const sizeFor = (budget: number): Size =>
  budget < 10 ? { input: 64, output: 16, streams: 4 } : budget < 60 ? { input: 128, output: 32, streams: 8 } : { input: 1_024, output: 256, streams: 64 }

/**
 * What the benchmark `seatrial-bench` 1 sends within a budget in seconds: 1,024 tokens in and 256 out (half and an eighth of a context below 1,536), at concurrency 1, S/4
 * and S, where S is what the KV cache and the engine's slots hold, at most 64. In 300 seconds alone for at least 5 requests and 20 s, else 30 and 40 s, each at most 75 s and
 * once 30 s more; a smaller budget has all these times by its share of 300 s, and a larger one the same.
 */
export const workload = (budget: number, maxContext: number, kvTokens: number | null, settings: Pick<ServingSettings, "engine_flags">): Workload => {
  const size = sizeFor(budget)
  const fits = maxContext >= 1_536 ? size : { input: Math.max(1, Math.floor(maxContext / 2)), output: Math.max(2, Math.floor(maxContext / 8)) }
  const inputTokens = Math.min(size.input, fits.input)
  const outputTokens = Math.min(size.output, fits.output)
  const { max_num_seqs, max_running_requests } = settings.engine_flags ?? {}
  const slots = [max_num_seqs, max_running_requests].filter((value) => typeof value === "number")
  const most = Math.min(size.streams, Math.floor((kvTokens ?? Number.POSITIVE_INFINITY) / (inputTokens + outputTokens)), ...slots)
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
