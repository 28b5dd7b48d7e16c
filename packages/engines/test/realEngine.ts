import { type EngineAdapter, engineFor } from "../src/index.ts"

/** An engine other than the reference engine. */
export const realEngine = (runtime: "vllm" | "sglang"): EngineAdapter => {
  const engine = engineFor(runtime)
  if (engine === undefined) throw new Error(`there is no ${runtime}`)
  return engine
}
