import { defineConfig } from "vitest/config"

// Every fault that can be put into an engine or its files, each against the check suite: long, and by command alone.
export default defineConfig({
  test: {
    include: ["test/mutants/**/*.test.ts"],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    maxWorkers: 2
  }
})
