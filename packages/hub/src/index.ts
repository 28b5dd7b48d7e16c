export * from "./Hub.ts"
