import type { SamplingDefaults } from "./repository.ts"

const isWithin = (least: number, most: number) => (value: number) => value >= least && value <= most

/** The ranges that requests accept. A value outside of its range is not a default. */
const ranges = {
  temperature: isWithin(0, 2),
  top_p: (value) => value > 0 && value <= 1,
  top_k: (value) => Number.isInteger(value) && value >= -1 && value <= 1_000_000,
  min_p: isWithin(0, 1),
  repetition_penalty: (value) => value > 0 && value <= 2
} as const satisfies Readonly<Record<keyof SamplingDefaults, (value: number) => boolean>>

/** Further fields that some engines read. */
const further = { presence_penalty: isWithin(-2, 2), frequency_penalty: isWithin(-2, 2) } as const

/** The sampling defaults of a `generation_config.json`. */
export const samplingDefaults = (config: Readonly<Record<string, unknown>>): SamplingDefaults =>
  Object.fromEntries(
    Object.entries(ranges).flatMap(([name, isInRange]) => {
      const value = config[name]
      return typeof value === "number" && isInRange(value) ? [[name, value]] : []
    })
  )

/**
 * Whether a `generation_config.json` has sampling values that no engine accepts. An engine that reads them refuses each
 * request that relies on the default.
 */
export const refusesSampling = (config: Readonly<Record<string, unknown>>): boolean =>
  Object.entries({ ...ranges, ...further }).some(([name, isInRange]) => {
    const value = config[name] ?? null
    return value !== null && !(typeof value === "number" && isInRange(value))
  })
