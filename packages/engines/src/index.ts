export * from "./EngineAdapter.ts"
export * from "./engines.ts"
