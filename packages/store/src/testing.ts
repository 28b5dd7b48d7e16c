export { listStatement } from "./requests/statements.ts"
export * from "./testing/servingModel.ts"
export * from "./testing/testDatabase.ts"
export * from "./testing/trialRecords.ts"
