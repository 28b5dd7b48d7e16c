export * from "./chunkGuard.ts"
export * from "./malformedRequests.ts"
export * from "./scanJson.ts"
export * from "./serveInTurn.ts"
