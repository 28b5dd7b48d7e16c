import { join } from "node:path"
import { defineConfig } from "vitest/config"

// The long proofs of the gateway: real clients, processes that die, callers that do not read; `npm test` leaves them out.
export default defineConfig({
  test: {
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node-compile") },
    globalSetup: "test/postgres.ts",
    include: ["test/gateway/**/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 2
  }
})
