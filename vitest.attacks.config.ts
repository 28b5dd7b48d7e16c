import { join } from "node:path"
import { defineConfig } from "vitest/config"

// Attacks on separate gateway processes while a client of another organization is measured; `npm test` leaves them out.
export default defineConfig({
  test: {
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node-compile") },
    globalSetup: "test/postgres.ts",
    include: ["test/attacks/**/*.test.ts"],
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // Latencies are compared, so attacks run one after the other.
    maxWorkers: 1
  }
})
