export * from "./KubeClient.ts"
