import type { SamplingDefaults } from "@seatrial/domain"
import type { Target } from "./Checking.ts"

const neutral: Required<SamplingDefaults> = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1 }
const all = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"] as const

/** What `/v1/messages` has of it. */
export const inMessages = ["temperature", "top_p", "top_k"] as const

/**
 * Gives what the request leaves open the value that the repository means, where an engine by itself takes another: vLLM reads the generation configuration on every path as
 * Transformers means it; SGLang has figures of its own on some paths, and refuses a request for a `top_k` of 0 there, which is none.
 */
export const fillSamplingDefaults = (body: Record<string, unknown>, { sampling, wire }: Target, names: ReadonlyArray<keyof SamplingDefaults> = all): void => {
  if (!wire.overridesSamplingDefaults || sampling === null) return
  for (const name of names) body[name] ??= (name === "top_k" && sampling.top_k === 0 ? undefined : sampling[name]) ?? neutral[name]
}
