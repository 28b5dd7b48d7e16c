import { join } from "node:path"
import { defineConfig } from "vitest/config"

// What needs a real Kubernetes control plane, which tools/build.sh builds with Go; `npm test` leaves it out.
export default defineConfig({
  test: {
    // Programs that tests start as processes of their own begin with what an earlier one compiled.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node-compile") },
    globalSetup: ["test/cluster/runFolder.ts", "test/postgres.ts"],
    include: ["test/cluster/**/*.test.ts"],
    testTimeout: 1_200_000,
    hookTimeout: 600_000,
    // A worker whose machine is busy takes its time to end.
    teardownTimeout: 60_000,
    // A suite waits more than it computes.
    maxWorkers: 2
  }
})
