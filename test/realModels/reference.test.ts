import { assert, describe, it } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { serveSample } from "../mutants/serveSample.ts"
import { smolFiles } from "./smolFiles.ts"
import { trySmol } from "./smolSubject.ts"

/** Room for several sequences on the simulated GPU. */
const cardBytes = 2 * 2 ** 30
/** The suite asks as little as of a model for tests: this engine computes a few tokens a second. */
const parameters = 4_000_000

describe("SmolLM2-135M-Instruct on the reference engine", () => {
  it.live("passes its trial, shortened for the speed of the engine", () =>
    Effect.gen(function* () {
      const engine = engineFor("reference")
      if (engine === undefined) return yield* Effect.die(new Error("there is no reference engine"))
      const files = smolFiles()
      const settings = { runtime: "reference", host_class: "sim", max_context: 1_024, kv_cache_dtype: "auto" } as const
      const served = yield* serveSample({ files, cardBytes, maxContext: settings.max_context })
      const { failed, report } = yield* trySmol(served, files, { engine, settings }, { parameters })
      assert.isTrue(report.passed, failed.join(", "))
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  )
})
