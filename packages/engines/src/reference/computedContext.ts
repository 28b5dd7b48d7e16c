import { type EngineLoad, leastContext, type ModelConfig, shapeOf } from "@seatrial/domain"

/**
 * What a core computes in a second, approximately: products of a query with keys and values, and products of weights.
 */
const idleCore = { attention: 1e9, weights: 2.5e9 }

/** The same for a core that other processes use. The default context is derived from it. */
const busyCore = { attention: idleCore.attention / 4, weights: idleCore.weights / 4 }

/** The number of weights that each token is multiplied with. Only the last token needs the output head. */
const layerWeights = (config: ModelConfig): number => {
  const { head_dim, hidden_size, num_attention_heads, num_kv_heads, num_layers } = config
  const attention = 2 * hidden_size * head_dim * (num_attention_heads + num_kv_heads)
  return num_layers * (attention + 3 * hidden_size * (shapeOf(config).intermediate_size ?? 4 * hidden_size))
}

/**
 * The longest context in tokens that the reference engine reads before the trial's timeout of 60 s plus 1 s per 300
 * tokens. The attention's work grows with the square of the context, the weights' work with the context.
 */
const readIn = ({ config }: EngineLoad, core: typeof idleCore): number => {
  const attention = (config.num_layers * config.num_attention_heads * config.head_dim) / core.attention
  const slack = 1 / 300 - layerWeights(config) / core.weights
  const tokens = (slack + Math.sqrt(slack ** 2 + 4 * attention * 60)) / (2 * attention)
  return Math.max(leastContext, Math.floor(tokens / 16) * 16)
}

/** The longest context that is accepted. */
export const computedContext = (load: EngineLoad): number => readIn(load, idleCore)

/** The longest context that is chosen by default. */
export const chosenComputedContext = (load: EngineLoad): number => readIn(load, busyCore)

/** The limit for another engine: on simulated GPUs the reference engine runs in its place. */
export const standInContext = (load: EngineLoad): number => (load.card.simulated === true ? computedContext(load) : Number.POSITIVE_INFINITY)
export const chosenStandInContext = (load: EngineLoad): number => (load.card.simulated === true ? chosenComputedContext(load) : Number.POSITIVE_INFINITY)
