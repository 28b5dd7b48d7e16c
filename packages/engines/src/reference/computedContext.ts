import { type EngineLoad, leastContext } from "@seatrial/domain"

/** Products a second of a query with keys and values: about what one core does. */
const productsPerSecond = 1e9

/** Of these as many as a core that others use as well has left: a context that nobody asked for is chosen by it. */
const productsOfBusyCore = productsPerSecond / 4

/**
 * Most tokens of a context that the reference engine reads within the time that the trial waits for an answer (60 s, and 1 s for each 300 tokens): what it computes grows
 * with the context's square.
 */
const readIn = ({ config }: EngineLoad, products: number): number => {
  const work = (config.num_layers * config.num_attention_heads * config.head_dim) / products
  const tokens = (1 / 300 + Math.sqrt(1 / 300 ** 2 + 4 * work * 60)) / (2 * work)
  return Math.max(leastContext, Math.floor(tokens / 16) * 16)
}

/** A longer context is refused. */
export const computedContext = (load: EngineLoad): number => readIn(load, productsPerSecond)

/** A longer context is not chosen. */
export const chosenComputedContext = (load: EngineLoad): number => readIn(load, productsOfBusyCore)

/** The same for another engine, for which the reference engine stands in on simulated GPUs. */
export const standInContext = (load: EngineLoad): number => (load.card.simulated === true ? computedContext(load) : Number.POSITIVE_INFINITY)
export const chosenStandInContext = (load: EngineLoad): number => (load.card.simulated === true ? chosenComputedContext(load) : Number.POSITIVE_INFINITY)
