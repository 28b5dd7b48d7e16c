import type { ServingSettings } from "@seatrial/domain"

export interface Workload {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly seed: number
  readonly steps: ReadonlyArray<{ readonly concurrency: number; readonly millis: number }>
}

const seed = 20_261_121

/** Below this many seconds the workload is a sketch of the full one: shorter prompts and few streams. Its figures say so by their token counts. */
const fullBudget = 60

/**
 * What the benchmark sends within a budget in seconds: 1,024 tokens in and 256 out (half and an eighth of a context that is shorter), at concurrency 1, S/4 and S, where S is
 * what the KV cache and the engine's slots hold, at most 64.
 */
export const workload = (budget: number, maxContext: number, kvTokens: number | null, settings: Pick<ServingSettings, "engine_flags">): Workload => {
  const short = budget < fullBudget
  const whole =
    maxContext >= 1_536 ? { input: 1_024, output: 256 } : { input: Math.max(1, Math.floor(maxContext / 2)), output: Math.max(2, Math.floor(maxContext / 8)) }
  const inputTokens = short ? Math.min(whole.input, 128) : whole.input
  const outputTokens = short ? Math.min(whole.output, 32) : whole.output
  const slots = settings.engine_flags?.max_num_seqs
  const most = Math.min(
    short ? 8 : 64,
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
