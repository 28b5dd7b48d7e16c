import type { ModelConfig, ServingSettings } from "@seatrial/domain"

/** What of one way to encode positions has no meaning in another. */
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
 * The settings of a model's configuration that extend its context by YaRN, as JSON for either engine; null where none is asked for or the configuration's way to encode
 * positions is not known. The checkpoint's whole dictionary is written again, because one engine replaces what the other merges; always with `rope_type`, without
 * which one crashes and the other does nothing, and with the raised limit, without which the longer context is refused.
 */
export const yarnOverrides = (
  { native_context, rope }: Pick<ModelConfig, "native_context" | "rope">,
  { yarn }: Pick<ServingSettings, "yarn">
): string | null => {
  if (yarn === undefined || rope === undefined) return null
  const original = yarn.original_context ?? Math.min(native_context, rope.max_positions)
  const kept = Object.fromEntries(Object.entries(rope.parameters).filter(([name]) => !ofOtherKinds.has(name)))
  const extended = {
    rope_parameters: { ...kept, rope_type: "yarn", factor: yarn.factor, original_max_position_embeddings: original },
    max_position_embeddings: Math.floor(original * yarn.factor)
  }
  return JSON.stringify(rope.nested ? { text_config: extended } : extended)
}
