import { assert, describe, it } from "@effect/vitest"
import { revisionCapabilities } from "@seatrial/domain"
import type { TrainedName } from "@seatrial/reference-engine/sample"
import { answerItems, itemsFor, type SuiteSubject, scoreTexts } from "@seatrial/trial"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { fileMutants } from "../../mutants/fileMutants.ts"
import type { Served } from "../../mutants/serveSample.ts"
import { type Earlier, sampleSubject, trySample } from "../../mutants/trySample.ts"
import { deployed, startVllm } from "./startVllm.ts"

/** The subject of a trial as the operator creates it for this engine. */
const onVllm =
  (name: TrainedName) =>
  (subject: SuiteSubject): SuiteSubject => {
    const { engine, facts, settings } = deployed(name)
    return {
      ...subject,
      card: "processor x1",
      slots: 256,
      offers: engine.offers(settings, false),
      capabilities: revisionCapabilities(engine, facts, settings),
      cacheTokens: (metrics) => engine.measured({ metrics, log: "" }).kv_cache_tokens
    }
  }

interface Trying {
  readonly earlier?: Earlier
  readonly change?: (subject: SuiteSubject) => SuiteSubject
  readonly rows?: (name: string) => boolean
}

/** Whether the trial passes, and the rows that fail. The log contains the complete report. */
const tried = Effect.fnUntraced(function* (
  served: Served,
  model: TrainedName,
  { change = (subject) => subject, earlier = [], rows = () => true }: Trying = {}
) {
  const { likelihood, report } = yield* trySample(served, { model, rows, earlier, change: (subject) => change(onVllm(model)(subject)) })
  yield* Effect.logInfo(report.checks.map(({ detail = "", name, passed }) => `${passed ? "passed" : "failed"} ${name}: ${detail}`).join("\n"))
  return {
    passed: report.passed,
    failed: report.checks.filter(({ passed }) => !passed).map(({ name }) => name),
    leaves: [{ fingerprints: report.fingerprints, checks: report.checks, likelihood }]
  }
})

// On /v1/responses this version starts each prompt with two begin tokens if both the tokenizer and the template add one.
describe("with vLLM the trial", () => {
  const run = <A, E, R>(body: Effect.Effect<A, E, R>) => body.pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

  it.live("passes a sound model, withdraws the path with two begin tokens, and measures its cache", () =>
    run(
      Effect.gen(function* () {
        const served = yield* startVllm("tiny-chat")
        const { failed, passed } = yield* tried(served, "tiny-chat")
        assert.isTrue(passed)
        assert.include(failed, "responses_path")
        const metrics = yield* Effect.promise(async () => (await fetch(`${served.url}/metrics`)).text())
        assert.strictEqual(deployed("tiny-chat").engine.measured({ metrics, log: served.log() }).kv_cache_tokens, 3_072)
      })
    )
  )

  it.live("passes a reasoning model, and withdraws what does not work after reasoning", () =>
    run(
      Effect.gen(function* () {
        const { failed, passed } = yield* tried(yield* startVllm("tiny-thinker"), "tiny-thinker")
        assert.isTrue(passed)
        assert.includeMembers(failed, ["texts_json_mode", "responses_tool_choice"])
      })
    )
  )

  it.live("passes an adapter, which answers like its merged model", () =>
    run(
      Effect.gen(function* () {
        const merged = yield* Effect.scoped(
          Effect.gen(function* () {
            const twin = yield* startVllm("tiny-chat-sailor")
            const subject = yield* sampleSubject(twin, { change: (bare) => ({ ...onVllm("tiny-chat")(bare), salt: "merged" }) })
            const answers = yield* answerItems(subject, itemsFor(subject.parameters))
            return { answers, scores: yield* scoreTexts(subject), merged: { withinUlpMin: 1, othersEqual: true }, baseQuantized: false, everyModule: true }
          })
        )
        const served = yield* startVllm("tiny-chat", { adapter: "tiny-chat-adapter" })
        const change = (subject: SuiteSubject) => ({ ...subject, servedName: "adapter", listedName: "adapter", baseName: "m", merged })
        const { passed } = yield* tried(served, "tiny-chat", { change })
        assert.isTrue(passed)
      })
    )
  )

  // The results of an earlier trial of the sound model, which later ones are compared with.
  let sound: Earlier | undefined
  const triedSound = run(
    Effect.gen(function* () {
      const { failed, leaves } = yield* tried(yield* startVllm("tiny-chat"), "tiny-chat", { rows: (row) => row === "text_likelihood" })
      assert.deepStrictEqual(failed, [])
      return leaves
    })
  )
  for (const [name, finds] of [
    ["file_tensor_random", "text_likelihood"],
    ["file_rows_swapped", "text_likelihood"],
    ["file_rope_theta", "text_likelihood"],
    ["file_vocabulary_swapped", "tokenizer_agrees"],
    ["file_template_other", "template_agrees"]
  ] as const) {
    const { files, spoils } = fileMutants[name]
    it.live(`finds by ${finds} that ${spoils}, without reading the files`, () =>
      run(
        Effect.gen(function* () {
          sound ??= yield* triedSound
          const served = yield* startVllm("tiny-chat", { files: files() })
          assert.deepStrictEqual((yield* tried(served, "tiny-chat", { earlier: sound, rows: (row) => row === finds })).failed, [finds])
        })
      )
    )
  }
})
