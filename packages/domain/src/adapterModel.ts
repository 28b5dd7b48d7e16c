import type { Runtime } from "./serving.ts"

/** How an engine's adapter is called where it is started: whatever its model is called by, which may change while it serves. */
export const adapterName = "adapter"

/** The model that a request to an engine names to be answered with the adapter; SGLang reads a base's name before it. */
export const adapterModel = (runtime: Runtime): string => (runtime === "sglang" ? `base:${adapterName}` : adapterName)
