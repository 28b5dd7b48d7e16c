import { type EngineLoad, leastContext } from "@seatrial/domain"

/** Products a second of a query with keys and values: about what one core does. */
const productsPerSecond = 1e9

/**
 * Most tokens of a context that the reference engine reads within the time that the trial waits for an answer (60 s, and 1 s for each 300 tokens): what it computes grows
 * with the context's square. A longer one is refused.
 */
export const computedContext = ({ config }: EngineLoad): number => {
  const work = (config.num_layers * config.num_attention_heads * config.head_dim) / productsPerSecond
  const tokens = (1 / 300 + Math.sqrt(1 / 300 ** 2 + 4 * work * 60)) / (2 * work)
  return Math.max(leastContext, Math.floor(tokens / 16) * 16)
}

/** The same for another engine, for which the reference engine stands in on simulated GPUs. */
export const standInContext = (load: EngineLoad): number => (load.card.simulated === true ? computedContext(load) : Number.POSITIVE_INFINITY)
