import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { referenceOfFolder } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { installVllm } from "../engines/vllm/installVllm.ts"
import { deployedOf, serveVllm } from "../engines/vllm/startVllm.ts"
import type { Earlier } from "../mutants/trySample.ts"
import { smolFiles, smolFolder } from "./smolFiles.ts"
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

  it.live("agrees with Transformers at its first trial, and a copy with the rows of Q and K in the order of a GGUF file does not", () =>
    run(
      Effect.gen(function* () {
        const reference = yield* referenceOfFolder({ folder: smolFolder(), python: join(dirname(installVllm()), "python"), memoryBytes: 2 ** 30 })
        for (const [files, expected] of [
          [sound, []],
          [spoiledCopies[0]?.files(sound) ?? sound, ["reference_agrees"]]
        ] as const) {
          const served = yield* serveVllm(deployed, { files })
          const { failed } = yield* trySmol(served, sound, deployed, { reference, rows: (name) => name === "reference_agrees" })
          assert.deepStrictEqual(failed, [...expected])
        }
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
