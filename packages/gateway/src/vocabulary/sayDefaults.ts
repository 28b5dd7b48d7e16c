import type { Target } from "./Checking.ts"

/**
 * Gives what the request leaves open the value that the repository means, where an engine by itself takes another on this path: vLLM reads the generation configuration on
 * every path, SGLang has figures of its own on some.
 */
export const sayDefaults = (body: Record<string, unknown>, { runtime, sampling }: Target): void => {
  if (runtime !== "sglang" || sampling === null) return
  body.temperature ??= sampling.temperature ?? 1
  body.top_p ??= sampling.top_p ?? 1
  body.top_k ??= sampling.top_k === undefined || sampling.top_k < 1 ? -1 : sampling.top_k
  body.min_p ??= sampling.min_p ?? 0
  body.repetition_penalty ??= sampling.repetition_penalty ?? 1
}
