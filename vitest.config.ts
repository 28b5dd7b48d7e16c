import { join } from "node:path"
import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    // Programs that tests start as processes of their own begin with what an earlier one compiled.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node-compile") },
    globalSetup: "test/postgres.ts",
    include: ["packages/*/test/**/*.test.ts", "packages/engines/reference/test/**/*.test.ts", "test/**/*.test.ts"],
    exclude: [
      "**/node_modules/**",
      "test/contract/**",
      "test/cluster/**",
      "test/faults/**",
      "test/engines/**",
      "test/mutants/**",
      "test/attacks/**",
      "test/gateway/**",
      "test/e2e/long/**",
      "packages/*/test/long/**"
    ],
    testTimeout: 120_000,
    hookTimeout: 240_000,
    maxWorkers: 2,
    // Modules are loaded once a worker and not once a file: half of the time. No test keeps anything in a module or changes the process.
    isolate: false
  }
})
