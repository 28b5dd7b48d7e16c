import type { Runtime } from "./serving.ts"

/** How an engine knows a model by one of its callable names: to vLLM's parser one that begins with a hyphen is an argument, so there it is called something else. */
export const nameInEngine = (runtime: Runtime, model: string): string => (runtime === "vllm" && model.startsWith("-") ? "model" : model)
