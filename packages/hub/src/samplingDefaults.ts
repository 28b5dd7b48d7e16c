import type { SamplingDefaults } from "@seatrial/domain"
import type { Json } from "./ConfigReader.ts"

/** What a request may say too: a value beyond that is no default. */
const ranges = {
  temperature: (value) => value >= 0 && value <= 2,
  top_p: (value) => value > 0 && value <= 1,
  top_k: (value) => Number.isInteger(value) && value >= -1 && value <= 1_000_000,
  min_p: (value) => value >= 0 && value <= 1,
  repetition_penalty: (value) => value > 0 && value <= 2
} as const satisfies Readonly<Record<keyof SamplingDefaults, (value: number) => boolean>>

/** What a `generation_config.json` says of sampling. */
export const samplingDefaults = (config: Json): SamplingDefaults =>
  Object.fromEntries(
    Object.entries(ranges).flatMap(([name, isInRange]) => {
      const value = config[name]
      return typeof value === "number" && isInRange(value) ? [[name, value]] : []
    })
  )
