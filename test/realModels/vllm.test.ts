import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { referenceOfFolder } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { installVllm } from "../engines/vllm/installVllm.ts"
import { deployedOf, loadWeights, serveVllm } from "../engines/vllm/startVllm.ts"
import type { Files } from "../mutants/serveSample.ts"
import { smolFiles, smolFolder } from "./smolFiles.ts"
import { smolFacts, trySmol } from "./smolSubject.ts"
import { spoiledCopies, weights } from "./spoiledCopies.ts"

const sound = smolFiles()
const deployed = deployedOf(smolFacts(sound))

/** Other programs also use the machine. How fast the model is on a processor is not judged here. */
const patience = 8

/** Copies that differ from the sound files only in the weights, and the others. */
const copies = spoiledCopies.map(({ files, ...copy }) => ({ ...copy, make: () => files(sound) }))
const ofWeights = copies.filter(({ spoils }) => spoils === weights)
const ofOtherFiles = copies.filter(({ spoils }) => spoils !== weights)

const emptyFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "seatrial-copy-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

describe("SmolLM2-135M-Instruct on vLLM", () => {
  const run = <A, E, R>(body: Effect.Effect<A, E, R>) => body.pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))
  const source = { folder: smolFolder(), python: join(dirname(installVllm()), "python"), memoryBytes: 2 ** 30 }
  const computeReference = referenceOfFolder(source, smolFacts(sound).commit)

  it.live("passes its trial", () =>
    run(
      Effect.gen(function* () {
        const reference = yield* computeReference
        const { failed, report } = yield* trySmol(yield* serveVllm(deployed, { files: sound }), sound, deployed, { reference, patience })
        assert.isTrue(report.passed, failed.join(", "))
      })
    )
  )

  it.live(`agrees with Transformers at its first trial, and ${ofWeights.length} copies with other weights do not`, () =>
    run(
      Effect.gen(function* () {
        const reference = yield* computeReference
        const folder = yield* emptyFolder
        const served = yield* serveVllm(deployed, { files: sound, reloads: true })
        const failedWith = Effect.fnUntraced(function* (files: Files) {
          writeFileSync(join(folder, weights), files.get(weights) ?? "")
          yield* loadWeights(served, folder)
          return (yield* trySmol(served, sound, deployed, { reference, patience, rows: (name) => name === "reference_agrees" })).failed
        })
        assert.deepStrictEqual(yield* failedWith(sound), [])
        for (const { fault, make } of ofWeights) assert.deepStrictEqual(yield* failedWith(make()), ["reference_agrees"], fault)
        assert.deepStrictEqual(yield* failedWith(sound), [])
      })
    )
  )

  for (const { fault, make, row } of ofOtherFiles) {
    it.live(`is refused by ${row} at its first trial: ${fault}`, () =>
      run(
        Effect.gen(function* () {
          const reference = row === "reference_agrees" ? yield* computeReference : null
          const served = yield* serveVllm(deployed, { files: make() })
          const { failed, report } = yield* trySmol(served, sound, deployed, { reference, patience, rows: (name) => name === row })
          assert.deepStrictEqual(failed, [row])
          assert.isFalse(report.passed)
        })
      )
    )
  }
})
