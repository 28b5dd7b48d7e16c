export { HubRefusal, HubUnavailable, WeightsMismatch } from "./failures.ts"
export * from "./Hub.ts"
