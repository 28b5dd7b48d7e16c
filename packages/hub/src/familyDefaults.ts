import { configurationDefaults } from "./generated/configurationDefaults.ts"

/**
 * What Transformers assumes where a configuration of that type leaves a value out, as nested text configurations do: the defaults of its
 * `configuration_*.py` classes, as far as memory depends on them.
 */
export const familyDefaults = (modelType: string): Readonly<Record<string, unknown>> =>
  Object.hasOwn(configurationDefaults, modelType) ? (configurationDefaults[modelType] ?? {}) : {}

/** Types whose embeddings serve as the output head where the configuration does not say. */
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
