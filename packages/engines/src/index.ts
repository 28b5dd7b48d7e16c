export * from "./EngineAdapter.ts"
export * from "./engines.ts"
export { vllmMemory } from "./vllm/memory.ts"
