import { defineConfig } from "vitest/config"

// What needs a real Kubernetes control plane, which tools/build.sh builds with Go; `npm test` leaves it out.
export default defineConfig({
  test: {
    globalSetup: "test/postgres.ts",
    include: ["test/cluster/**/*.test.ts"],
    testTimeout: 600_000,
    hookTimeout: 120_000,
    maxWorkers: 1
  }
})
