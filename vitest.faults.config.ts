import { defineConfig } from "vitest/config"

// Schedules of faults on the local cluster, for minutes; `npm test` leaves them out.
export default defineConfig({
  test: {
    globalSetup: "test/postgres.ts",
    setupFiles: "test/faults/shortPatience.ts",
    include: ["test/faults/**/*.test.ts"],
    testTimeout: 3_600_000,
    hookTimeout: 600_000,
    // A suite waits more than it computes.
    maxWorkers: 2
  }
})
