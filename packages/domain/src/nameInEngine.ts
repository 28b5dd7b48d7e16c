import { adapterName } from "./adapterModel.ts"
import type { Runtime } from "./serving.ts"

/** How an engine knows a model by one of its callable names: to vLLM's parser one that begins with a hyphen is an argument, so there it is called something else. */
export const nameInEngine = (runtime: Runtime, model: string): string => (runtime === "vllm" && model.startsWith("-") ? "model" : model)

/** How an engine that also serves an adapter knows the base, by one of the model's callable names: never by the adapter's own name. */
export const baseInEngine = (runtime: Runtime, model: string): string => {
  const name = nameInEngine(runtime, model)
  return name === adapterName ? "base" : name
}

/** The names that an engine is started with, each once. `names`: the model's callable names. `isAdapted`: whether it serves an adapter of the model under `adapterName`. */
export const servedNames = (runtime: Runtime, names: ReadonlyArray<string>, isAdapted: boolean): ReadonlyArray<string> => [
  ...new Set(names.map((name) => (isAdapted ? baseInEngine(runtime, name) : nameInEngine(runtime, name))))
]
