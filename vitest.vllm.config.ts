import { defineConfig } from "vitest/config"

// The trial and the gateway against vLLM itself, in its build for processors: 6 GB to install, and by command alone.
export default defineConfig({ test: { include: ["test/engines/vllm/**/*.test.ts"], testTimeout: 1_800_000, hookTimeout: 1_800_000 } })
