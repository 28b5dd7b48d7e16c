import type { SamplingDefaults } from "./repository.ts"

const isWithin = (least: number, most: number) => (value: number) => value >= least && value <= most

/** What a request may say too: a value beyond that is no default. */
const ranges = {
  temperature: isWithin(0, 2),
  top_p: (value) => value > 0 && value <= 1,
  top_k: (value) => Number.isInteger(value) && value >= -1 && value <= 1_000_000,
  min_p: isWithin(0, 1),
  repetition_penalty: (value) => value > 0 && value <= 2
} as const satisfies Readonly<Record<keyof SamplingDefaults, (value: number) => boolean>>

/** What some engines read there beside it. */
const further = { presence_penalty: isWithin(-2, 2), frequency_penalty: isWithin(-2, 2) } as const

/** What a `generation_config.json` says of sampling. */
export const samplingDefaults = (config: Readonly<Record<string, unknown>>): SamplingDefaults =>
  Object.fromEntries(
    Object.entries(ranges).flatMap(([name, isInRange]) => {
      const value = config[name]
      return typeof value === "number" && isInRange(value) ? [[name, value]] : []
    })
  )

/** Whether a `generation_config.json` says something of sampling that no engine takes: one that reads it refuses each request that leaves it open. */
export const refusesSampling = (config: Readonly<Record<string, unknown>>): boolean =>
  Object.entries({ ...ranges, ...further }).some(([name, isInRange]) => {
    const value = config[name] ?? null
    return value !== null && !(typeof value === "number" && isInRange(value))
  })
