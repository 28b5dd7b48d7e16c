import type { ServingSettings } from "@seatrial/domain"

export interface Workload {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly seed: number
  readonly steps: ReadonlyArray<{ readonly concurrency: number; readonly millis: number }>
}

const seed = 20_261_121

interface Size {
  readonly input: number
  readonly output: number
  readonly streams: number
}

/** Below a minute the workload is a sketch of the full one, and below ten seconds a glance: shorter prompts, few streams. Its figures say so by their token counts. */
const sizeFor = (budget: number): Size =>
  budget < 10 ? { input: 64, output: 16, streams: 4 } : budget < 60 ? { input: 128, output: 32, streams: 8 } : { input: 1_024, output: 256, streams: 64 }

/**
 * What the benchmark sends within a budget in seconds: 1,024 tokens in and 256 out (half and an eighth of a context that is shorter), at concurrency 1, S/4 and S, where S is
 * what the KV cache and the engine's slots hold, at most 64.
 */
export const workload = (budget: number, maxContext: number, kvTokens: number | null, settings: Pick<ServingSettings, "engine_flags">): Workload => {
  const size = sizeFor(budget)
  const fits = maxContext >= 1_536 ? size : { input: Math.max(1, Math.floor(maxContext / 2)), output: Math.max(2, Math.floor(maxContext / 8)) }
  const inputTokens = Math.min(size.input, fits.input)
  const outputTokens = Math.min(size.output, fits.output)
  const slots = settings.engine_flags?.max_num_seqs
  const most = Math.min(
    size.streams,
    Math.floor((kvTokens ?? Number.POSITIVE_INFINITY) / (inputTokens + outputTokens)),
    typeof slots === "number" ? slots : Number.POSITIVE_INFINITY
  )
  const levels = [...new Set([1, Math.max(1, Math.floor(most / 4)), Math.max(1, most)])]
  // A quarter of the budget is warm-up and overrun; the first step gets half the time of the others.
  const share = (budget * 1_000 * 0.75) / (levels.length - 0.5)
  return {
    inputTokens,
    outputTokens,
    seed,
    steps: levels.map((concurrency, index) => ({
      concurrency,
      millis: Math.min(75_000, index === 0 ? share / 2 : share)
    }))
  }
}
