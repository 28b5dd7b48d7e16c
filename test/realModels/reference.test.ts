import { assert, describe, it } from "@effect/vitest"
import { isFailedCheck } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { failedChecks } from "../../packages/operator/src/decide/failedChecks.ts"
import { serveSample } from "../mutants/serveSample.ts"
import { smolFiles } from "./smolFiles.ts"
import { trySmol } from "./smolSubject.ts"

/** Room for several sequences on the simulated GPU. */
const cardBytes = 2 * 2 ** 30
/** The suite asks as little as of a model for tests: this engine computes a few tokens a second. */
const parameters = 4_000_000

describe("SmolLM2-135M-Instruct on the reference engine", () => {
  it.live("is blamed for nothing: a check passes, or its time ended while the engine computed, and the trial is unavailable", () =>
    Effect.gen(function* () {
      const engine = engineFor("reference")
      if (engine === undefined) return yield* Effect.die(new Error("there is no reference engine"))
      const files = smolFiles()
      const settings = { runtime: "reference", host_class: "sim", max_context: 1_024, kv_cache_dtype: "auto" } as const
      const served = yield* serveSample({ files, cardBytes, maxContext: settings.max_context })
      const { report } = yield* trySmol(served, files, { engine, settings }, { parameters })
      const failed = report.outcomes.filter((outcome) => isFailedCheck(outcome) && outcome.class === "required")
      for (const { isComputing, name, outcome } of failed) assert.deepStrictEqual([outcome, isComputing], ["timeout", true], name)
      const passed = report.checks.filter((check) => check.passed).map(({ name }) => name)
      assert.includeMembers(passed, ["files_match_commit", "tensors_complete", "config_coherent", "engine_identity", "tokenizer_agrees"])
      if (failed.length > 0) assert.strictEqual(failedChecks(report).code, "trial_unavailable")
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )
})
