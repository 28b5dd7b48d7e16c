export * from "./chunkGuard.ts"
export * from "./scanJson.ts"
