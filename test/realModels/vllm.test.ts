import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { deployedOf, serveVllm } from "../engines/vllm/startVllm.ts"
import type { Earlier } from "../mutants/trySample.ts"
import { smolFiles } from "./smolFiles.ts"
import { smolFacts, trySmol } from "./smolSubject.ts"
import { spoiledCopies } from "./spoiledCopies.ts"

const sound = smolFiles()
const deployed = deployedOf(smolFacts(sound))

describe("SmolLM2-135M-Instruct on vLLM", () => {
  const run = <A, E, R>(body: Effect.Effect<A, E, R>) => body.pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  let earlier: Earlier | undefined

  const soundScores = run(
    Effect.gen(function* () {
      const { failed, likelihood, report } = yield* trySmol(yield* serveVllm(deployed, { files: sound }), sound, deployed, {
        rows: (name) => name === "text_likelihood"
      })
      assert.deepStrictEqual(failed, [])
      return [{ fingerprints: report.fingerprints, likelihood }]
    })
  )

  it.live("passes its trial", () =>
    run(
      Effect.gen(function* () {
        const { failed, report } = yield* trySmol(yield* serveVllm(deployed, { files: sound }), sound, deployed)
        assert.isTrue(report.passed, failed.join(", "))
      })
    )
  )

  for (const { fault, files, first, row } of spoiledCopies) {
    it.live(`is refused by ${row}${first ? " at its first trial" : ", compared with an earlier trial"}: ${fault}`, () =>
      run(
        Effect.gen(function* () {
          earlier ??= first ? undefined : yield* soundScores
          const served = yield* serveVllm(deployed, { files: files(sound) })
          const { failed, report } = yield* trySmol(served, sound, deployed, { rows: (name) => name === row, earlier: first ? [] : (earlier ?? []) })
          assert.deepStrictEqual(failed, [row])
          assert.isFalse(report.passed)
        })
      )
    )
  }
})
