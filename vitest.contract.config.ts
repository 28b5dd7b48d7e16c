import { join } from "node:path"
import { defineConfig } from "vitest/config"

// The long proofs, of the HTTP contract and of the whole system; `npm test` leaves them out.
export default defineConfig({
  test: {
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node-compile") },
    globalSetup: "test/postgres.ts",
    include: ["test/contract/**/*.test.ts", "test/e2e/long/**/*.test.ts", "packages/*/test/long/**/*.test.ts"],
    testTimeout: 900_000,
    hookTimeout: 600_000,
    maxWorkers: 2
  }
})
