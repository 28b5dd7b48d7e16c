import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    globalSetup: "test/postgres.ts",
    include: ["packages/*/test/**/*.test.ts", "packages/engines/reference/test/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/contract/**", "test/cluster/**", "test/faults/**"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 2
  }
})
