import { type EngineAdapter, engineFor } from "../src/index.ts"

/** An engine that is not ours. */
export const found = (runtime: "vllm" | "sglang"): EngineAdapter => {
  const engine = engineFor(runtime)
  if (engine === undefined) throw new Error(`there is no ${runtime}`)
  return engine
}
