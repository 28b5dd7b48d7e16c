/** The parameters of rotary position embeddings in the reference engine. */
export interface RopeConfig {
  readonly theta: number
  readonly scaling:
    | { readonly kind: "none" }
    | { readonly kind: "linear"; readonly factor: number }
    | { readonly kind: "llama3"; readonly factor: number; readonly lowFrequency: number; readonly highFrequency: number; readonly originalLength: number }
    | {
        readonly kind: "yarn"
        readonly factor: number
        readonly originalLength: number
        readonly betaFast: number
        readonly betaSlow: number
        /** Factor for cosines and sines. */
        readonly attention: number
        readonly truncated: boolean
      }
}

const number = (fields: Readonly<Record<string, unknown>>, name: string): number | null => {
  const value = fields[name]
  return typeof value === "number" && Number.isFinite(value) ? value : null
}
const positive = (fields: Readonly<Record<string, unknown>>, name: string): number | null => {
  const value = number(fields, name)
  return value !== null && value > 0 ? value : null
}

const yarnScale = (factor: number, weight: number) => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1)

/**
 * The rotary parameters for a configuration's `rope_parameters` or `rope_scaling`, or the reason why the reference
 * engine does not support them, as the rest of a sentence. `maxPositions`: the limit of the configuration in tokens,
 * used if YaRN's entry has no original length.
 */
export const referenceRope = (fields: Readonly<Record<string, unknown>>, theta: number, maxPositions: number): RopeConfig | string => {
  const type = fields.rope_type ?? fields.type ?? "default"
  const kind = typeof type === "string" ? type : "unknown"
  if (!(theta > 1)) return `a rope_theta of ${theta}; it must be above 1`
  if (kind === "default") return { theta, scaling: { kind: "none" } }
  const factor = positive(fields, "factor")
  if (kind === "linear" && factor !== null) return { theta, scaling: { kind, factor } }
  const [highFrequency, lowFrequency] = [positive(fields, "high_freq_factor"), positive(fields, "low_freq_factor")]
  const original = positive(fields, "original_max_position_embeddings")
  if (kind === "llama3" && factor !== null && lowFrequency !== null && highFrequency !== null && original !== null && highFrequency > lowFrequency) {
    return { theta, scaling: { kind, factor, lowFrequency, highFrequency, originalLength: original } }
  }
  if (kind === "yarn" && factor !== null && factor >= 1) {
    const [one, all] = [number(fields, "mscale"), number(fields, "mscale_all_dim")]
    const attention =
      positive(fields, "attention_factor") ??
      (one !== null && one !== 0 && all !== null && all !== 0 ? yarnScale(factor, one) / yarnScale(factor, all) : yarnScale(factor, 1))
    return {
      theta,
      scaling: {
        kind,
        factor,
        originalLength: original ?? maxPositions,
        betaFast: positive(fields, "beta_fast") ?? 32,
        betaSlow: positive(fields, "beta_slow") ?? 1,
        attention,
        truncated: fields.truncate !== false
      }
    }
  }
  return `rope scaling '${kind}': only default, linear, llama3 and yarn, each with its fields`
}
