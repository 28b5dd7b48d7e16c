import { defineConfig } from "vitest/config"

// The long proofs of the HTTP contract; `npm test` leaves them out.
export default defineConfig({
  test: {
    globalSetup: "test/postgres.ts",
    include: ["test/contract/**/*.test.ts"],
    testTimeout: 900_000,
    hookTimeout: 120_000,
    maxWorkers: 2
  }
})
