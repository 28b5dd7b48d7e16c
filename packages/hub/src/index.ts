export { HubRefusal, HubUnavailable, WeightsMismatch } from "./failures.ts"
export * from "./Hub.ts"
export { manifestSha256 } from "./manifestSha256.ts"
