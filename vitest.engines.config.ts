import { defineConfig } from "vitest/config"

// What the adapters say of the engines against the engines' own packages, which are large: by command only.
export default defineConfig({ test: { include: ["test/engines/**/*.test.ts"], testTimeout: 600_000, hookTimeout: 600_000 } })
