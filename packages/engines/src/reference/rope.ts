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

type Fields = Readonly<Record<string, unknown>>
type Scaling = RopeConfig["scaling"]

const linear = (fields: Fields): Scaling | null => {
  const factor = positive(fields, "factor")
  return factor === null ? null : { kind: "linear", factor }
}

const llama3 = (fields: Fields): Scaling | null => {
  const factor = positive(fields, "factor")
  const [highFrequency, lowFrequency] = [positive(fields, "high_freq_factor"), positive(fields, "low_freq_factor")]
  const originalLength = positive(fields, "original_max_position_embeddings")
  if (factor === null || lowFrequency === null || highFrequency === null || originalLength === null) return null
  return highFrequency > lowFrequency ? { kind: "llama3", factor, lowFrequency, highFrequency, originalLength } : null
}

/** YaRN's factor for cosines and sines. Without both weights, or if one is zero, the weights do not count. */
const yarnAttention = (fields: Fields, factor: number): number => {
  const [one, all] = [number(fields, "mscale") ?? 0, number(fields, "mscale_all_dim") ?? 0]
  return one === 0 || all === 0 ? yarnScale(factor, 1) : yarnScale(factor, one) / yarnScale(factor, all)
}

const yarn = (fields: Fields, maxPositions: number): Scaling | null => {
  const factor = positive(fields, "factor")
  if (factor === null || factor < 1) return null
  return {
    kind: "yarn",
    factor,
    originalLength: positive(fields, "original_max_position_embeddings") ?? maxPositions,
    betaFast: positive(fields, "beta_fast") ?? 32,
    betaSlow: positive(fields, "beta_slow") ?? 1,
    attention: positive(fields, "attention_factor") ?? yarnAttention(fields, factor),
    truncated: fields.truncate !== false
  }
}

/** The reader of each kind of scaling. Null if a field is missing or invalid. */
const readers: ReadonlyMap<string, (fields: Fields, maxPositions: number) => Scaling | null> = new Map([
  ["default", () => ({ kind: "none" })],
  ["linear", linear],
  ["llama3", llama3],
  ["yarn", yarn]
])

/**
 * The rotary parameters for a configuration's `rope_parameters` or `rope_scaling`, or the reason why the reference
 * engine does not support them, as the rest of a sentence. `maxPositions`: the limit of the configuration in tokens,
 * used if YaRN's entry has no original length.
 */
export const referenceRope = (fields: Fields, theta: number, maxPositions: number): RopeConfig | string => {
  const type = fields.rope_type ?? fields.type ?? "default"
  const kind = typeof type === "string" ? type : "unknown"
  if (!(theta > 1)) return `a rope_theta of ${theta}; it must be above 1`
  const reader = readers.get(kind)
  if (reader === undefined) return `rope scaling '${kind}' is not supported; the supported kinds are ${[...readers.keys()].join(", ")}`
  const scaling = reader(fields, maxPositions)
  return scaling === null ? `rope scaling '${kind}' has a missing or invalid field` : { theta, scaling }
}
