import type { ModelConfig, ServingSettings } from "@seatrial/domain"

/** Members of other position encodings that have no meaning for YaRN. */
const ofOtherKinds = new Set([
  "type",
  "rope_type",
  "factor",
  "original_max_position_embeddings",
  "low_freq_factor",
  "high_freq_factor",
  "short_factor",
  "long_factor",
  "short_mscale",
  "long_mscale"
])

/**
 * The configuration overrides that extend the context of a model by YaRN, as JSON for either engine; null if the
 * request does not extend it or if the position encoding is unknown. The whole dictionary of the checkpoint is
 * repeated, because one engine replaces what the other merges. `rope_type` is always present: without it one engine
 * crashes and the other ignores the rest. The raised limit is present because engines refuse a longer context without
 * it.
 */
export const yarnOverrides = (
  { native_context, rope }: Pick<ModelConfig, "native_context" | "rope">,
  { yarn }: Pick<ServingSettings, "yarn">
): string | null => {
  if (yarn === undefined || rope === undefined) return null
  const original = yarn.original_context ?? Math.min(native_context, rope.max_positions)
  const parameters = Object.fromEntries(Object.entries(rope.parameters).filter(([name]) => !ofOtherKinds.has(name)))
  const extended = {
    rope_parameters: { ...parameters, rope_type: "yarn", factor: yarn.factor, original_max_position_embeddings: original },
    max_position_embeddings: Math.floor(original * yarn.factor)
  }
  return JSON.stringify(rope.nested ? { text_config: extended } : extended)
}
