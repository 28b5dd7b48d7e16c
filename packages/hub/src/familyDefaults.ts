import { configurationDefaults } from "./generated/configurationDefaults.ts"

/**
 * The values that Transformers assumes if a configuration of that type omits them, as nested text configurations do:
 * the defaults of its `configuration_*.py` classes that affect memory use.
 */
export const familyDefaults = (modelType: string): Readonly<Record<string, unknown>> =>
  Object.hasOwn(configurationDefaults, modelType) ? (configurationDefaults[modelType] ?? {}) : {}

/** Types whose embeddings are also the output head if the configuration does not say. */
export const tiedFamilies: ReadonlySet<string> = new Set([
  "mamba",
  "falcon_mamba",
  "gemma",
  "gemma2",
  "gemma3",
  "gemma3_text",
  "gemma3n",
  "gemma3n_text",
  "gemma4",
  "gemma4_text",
  "cohere",
  "cohere2",
  "gpt2"
])
