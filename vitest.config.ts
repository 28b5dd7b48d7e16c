import { join } from "node:path"
import { defineConfig } from "vitest/config"
import LongestFirst from "./test/LongestFirst.ts"

/** Programs that tests start as their own processes reuse what an earlier one compiled. */
const env = { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/node-compile") }
const postgres = "test/postgres.ts"
const minutes = (count: number) => ({ testTimeout: count * 60_000, hookTimeout: Math.min(count, 10) * 60_000 })

/** Suites that `npm test` leaves out. Each has a command of its own in package.json. */
const longSuites = ["attacks", "cluster", "contract", "engines", "faults", "gateway", "gitops", "image", "mutants", "node", "realModels"]

export default defineConfig({
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // A worker on a busy machine needs time to end.
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          name: "unit",
          env,
          globalSetup: postgres,
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: ["**/node_modules/**", "test/e2e/long/**", "packages/*/test/long/**", ...longSuites.map((suite) => `test/${suite}/**`)],
          testTimeout: 120_000,
          hookTimeout: 240_000,
          // Modules are loaded once per worker instead of once per file, which halves the time. No test keeps state in a module or changes the process.
          isolate: false,
          // Node loads the modules itself, and collects young garbage less often: both save processor time. No unit test replaces a module.
          experimental: { viteModuleRunner: false },
          execArgv: ["--max-semi-space-size=64"],
          // Tests wait for processes and for Postgres, so that three workers keep two processors busy.
          maxWorkers: 3
        }
      },
      // The long proofs of the HTTP contract and of the whole system.
      {
        test: {
          name: "contract",
          env,
          globalSetup: postgres,
          include: ["test/contract/**/*.test.ts", "test/e2e/long/**/*.test.ts", "packages/*/test/long/**/*.test.ts"],
          ...minutes(15)
        }
      },
      // The long proofs of the gateway: real clients, processes that die, callers that do not read.
      { test: { name: "gateway", env, globalSetup: postgres, include: ["test/gateway/**/*.test.ts"], ...minutes(10) } },
      // Attacks on separate gateway processes while a client of another organization is measured. Run it with one worker, because it compares latencies.
      { test: { name: "attacks", env, globalSetup: postgres, include: ["test/attacks/**/*.test.ts"], ...minutes(4) } },
      // What needs a real Kubernetes control plane, which tools/build.sh builds with Go.
      {
        test: { name: "cluster", env, globalSetup: ["test/cluster/runFolder.ts", postgres], include: ["test/cluster/**/*.test.ts"], ...minutes(20) }
      },
      // Schedules of faults on the local cluster.
      {
        test: {
          name: "faults",
          env,
          globalSetup: postgres,
          setupFiles: "test/faults/shortPatience.ts",
          include: ["test/faults/**/*.test.ts"],
          ...minutes(60)
        }
      },
      // The container image, which buildah builds.
      { test: { name: "image", env, globalSetup: postgres, include: ["test/image/**/*.test.ts"], ...minutes(20) } },
      // The chart on real nodes, which tools/build.sh builds with Go. A machine has one network for them.
      { test: { name: "node", env, include: ["test/node/**/*.test.ts"], fileParallelism: false, ...minutes(20) } },
      // Argo CD installs the chart on a real control plane. tools/build.sh builds it with Go.
      {
        test: { name: "gitops", env, globalSetup: ["test/cluster/runFolder.ts", postgres], include: ["test/gitops/**/*.test.ts"], ...minutes(30) }
      },
      // The engine adapters compared with the engines' own packages, which are large.
      { test: { name: "engines", include: ["test/engines/**/*.test.ts"], exclude: ["test/engines/vllm/**"], ...minutes(10) } },
      // The trial and the gateway with vLLM's build for processors, which takes 6 GB to install.
      { test: { name: "vllm", include: ["test/engines/vllm/**/*.test.ts"], ...minutes(30) } },
      // The trial of a real model of 135 million parameters, and of spoiled copies of it. It needs vLLM's build for processors too, and one engine at a time.
      { test: { name: "models", include: ["test/realModels/**/*.test.ts"], fileParallelism: false, ...minutes(90) } },
      // Every fault that can be put into an engine or its files, each against the check suite.
      { test: { name: "mutants", include: ["test/mutants/**/*.test.ts"], ...minutes(10) } }
    ]
  }
})
