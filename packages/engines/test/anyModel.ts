import { Commit, type ModelConfig, type RepositoryFacts } from "@seatrial/domain"
import { Schema } from "effect"

/** A repository with a model of this configuration. Default: the size of Llama 3.1 8B. */
export const factsOf = (config: ModelConfig, weights_bytes = 16_060_522_496, parameters = 8_030_261_248): RepositoryFacts => ({
  repo: "any/model",
  ref: "main",
  commit: Schema.decodeSync(Commit)("a".repeat(40)),
  license: null,
  gated: false,
  files: [],
  config,
  weights_bytes,
  parameters,
  chat_template: null
})
