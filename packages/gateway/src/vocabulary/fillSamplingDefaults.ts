import type { SamplingDefaults } from "@seatrial/domain"
import type { Target } from "./Checking.ts"

const neutral: Required<SamplingDefaults> = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 }
const all = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"] as const

/** The sampling parameters of `/v1/messages`. */
export const inMessages = ["temperature", "top_p", "top_k"] as const

/**
 * Sets omitted sampling parameters to the repository's defaults if the engine would use other values. vLLM reads the
 * generation configuration on every path as Transformers does. SGLang uses its own defaults on some paths. It also
 * rejects `top_k: 0`, which means "off".
 */
export const fillSamplingDefaults = (body: Record<string, unknown>, { sampling, wire }: Target, names: ReadonlyArray<keyof SamplingDefaults> = all): void => {
  if (!wire.overridesSamplingDefaults || sampling === null) return
  for (const name of names) body[name] ??= (name === "top_k" && sampling.top_k === 0 ? undefined : sampling[name]) ?? neutral[name]
}
