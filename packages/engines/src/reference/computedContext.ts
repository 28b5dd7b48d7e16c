import { type EngineLoad, leastContext } from "@seatrial/domain"

/** Products of a query with keys and values per second on one idle core, approximately. */
const productsPerSecond = 1e9

/** The same on a core that other processes use. The default context is derived from it. */
const productsOfBusyCore = productsPerSecond / 4

/**
 * The longest context in tokens that the reference engine reads before the trial's timeout of 60 s plus 1 s per 300
 * tokens. The work grows with the square of the context.
 */
const readIn = ({ config }: EngineLoad, products: number): number => {
  const work = (config.num_layers * config.num_attention_heads * config.head_dim) / products
  const tokens = (1 / 300 + Math.sqrt(1 / 300 ** 2 + 4 * work * 60)) / (2 * work)
  return Math.max(leastContext, Math.floor(tokens / 16) * 16)
}

/** The longest context that is accepted. */
export const computedContext = (load: EngineLoad): number => readIn(load, productsPerSecond)

/** The longest context that is chosen by default. */
export const chosenComputedContext = (load: EngineLoad): number => readIn(load, productsOfBusyCore)

/** The limit for another engine: on simulated GPUs the reference engine runs in its place. */
export const standInContext = (load: EngineLoad): number => (load.card.simulated === true ? computedContext(load) : Number.POSITIVE_INFINITY)
export const chosenStandInContext = (load: EngineLoad): number => (load.card.simulated === true ? chosenComputedContext(load) : Number.POSITIVE_INFINITY)
