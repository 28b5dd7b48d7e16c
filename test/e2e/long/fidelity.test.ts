import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { engineWire } from "@seatrial/engines"
import { type TrainedName, writeTrained } from "@seatrial/reference-engine/sample"
import { answerItems, compareAnswers, makeEngineClient, mergedAgreement, mergeWeights, type Subject } from "@seatrial/trial"
import { Effect, Schema } from "effect"
import { FetchHttpClient } from "effect/http"
import { startProgram } from "../ChildProgram.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder } from "../LocalSystem.ts"

const main = "packages/reference-engine/src/main.ts"
const words = ["--served-model-name=model", "--host=127.0.0.1", "--port=0", "--gpu-memory-bytes=268435456", "--max-model-len=512"]

/** Runs a model in the reference engine, optionally with an adapter, for the questions of a trial. */
const serving = Effect.fnUntraced(function* (model: string, adapter?: string) {
  const adapted = adapter === undefined ? [] : ["--enable-lora", `--lora-modules=adapter=${adapter}`]
  const program = yield* startProgram([main, `--model=${model}`, ...words, ...adapted], {})
  const address = yield* eventually(
    "the engine is ready",
    Effect.sync(() => /on (http:\/\/[\d.:]+)/.exec(program.output())?.[1]),
    (found) => found !== undefined || program.hasExited()
  )
  if (address === undefined) return yield* Effect.fail(program.output())
  const client = yield* makeEngineClient({ url: address, timeout: "60 seconds", work: engineWire("reference").trialMetrics.work })
  const subject = (servedName: string): Subject => ({
    ...{ client, servedName, maxContext: 512, engineVersion: "reference", vocabSize: 512, chat: true, card: "test x1" }
  })
  return { base: subject("model"), adapter: subject("adapter") }
})

const jsonOf = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

it.live(
  "an adapter matches its merged model exactly, and a dropped, scaled or truncated adapter or another base is detected",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const at = (name: TrainedName, as: string = name) => {
        const target = join(folder, as)
        writeTrained(target, name)
        return target
      }
      /** The strong adapter with a changed configuration. */
      const changed = (as: string, over: object) => {
        const target = at("tiny-chat-adapter", as)
        const file = join(target, "adapter_config.json")
        writeFileSync(file, JSON.stringify({ ...jsonOf(readFileSync(file, "utf8")), ...over }))
        return target
      }
      const [base, child, adapter] = [at("tiny-chat"), at("tiny-chat-sailor"), at("tiny-chat-adapter")]

      // The merge equals the merged model of the training, byte for byte.
      const own = join(folder, "own")
      yield* mergeWeights({ base, adapter, target: own })
      assert.strictEqual(Buffer.compare(readFileSync(join(own, "model.safetensors")), readFileSync(join(child, "model.safetensors"))), 0)

      const merged = yield* mergedAgreement({ base, adapter, child })
      assert.deepStrictEqual(merged, { withinUlpMin: 1, othersEqual: true })
      const circumstances = { baseQuantized: false, everyModule: true, merged }
      // The unchanged adapter is tested first.
      const ofChild = yield* Effect.scoped(Effect.flatMap(serving(child), (engine) => answerItems(engine.base)))

      const { ofBase, right } = yield* Effect.scoped(
        Effect.gen(function* () {
          const engine = yield* serving(base, adapter)
          const ofBase = yield* answerItems(engine.base)
          const report = compareAnswers({ child: ofChild, adapter: yield* answerItems(engine.adapter), base: ofBase }, circumstances, 0)
          return { ofBase, right: report }
        })
      )
      yield* Effect.logInfo(JSON.stringify(right))
      assert.isNull(right.failure, JSON.stringify(right))
      assert.deepInclude(right.fidelity, { tier: "exact", suite: "seatrial-fidelity", suiteVersion: 2, n: 200, withinUlpMin: 1 })
      assert.deepStrictEqual([right.fidelity.rule1.passed, right.fidelity.rule2.status], [true, "passed"])

      // The adapter is not applied, so the base answers.
      const dropped = compareAnswers({ child: ofChild, adapter: ofBase, base: ofBase }, circumstances, 0)
      assert.strictEqual(dropped.failure?.code, "adapter_not_applied")

      const wrong: ReadonlyArray<readonly [what: string, over: object]> = [
        ["a quarter of its scale", { lora_alpha: 4 }],
        ["four times its scale", { lora_alpha: 64 }]
      ]
      for (const [what, over] of wrong) {
        const other = changed(what.replaceAll(" ", "-"), over)
        const report = yield* Effect.scoped(
          Effect.gen(function* () {
            const engine = yield* serving(base, other)
            return compareAnswers({ child: ofChild, adapter: yield* answerItems(engine.adapter), base: ofBase }, circumstances, 0)
          })
        )
        yield* Effect.logInfo(`${what}: ${JSON.stringify(report)}`)
        assert.isNotNull(report.failure, what)
        const agreement = yield* mergedAgreement({ base, adapter: other, child })
        assert.isBelow(agreement.withinUlpMin, 0.999, what)
      }

      // The rank differs from the tensors, so both the engine and the merge refuse it.
      const cut = changed("cut", { r: 4 })
      const refused = yield* Effect.flip(Effect.scoped(serving(base, cut)))
      assert.match(String(refused), /has shape/)
      assert.match((yield* Effect.flip(mergedAgreement({ base, adapter: cut, child }))).message, /does not have the stated rank/)

      // With another commit of the base the answers can look right, but the weights differ.
      const elsewhere = yield* mergedAgreement({ base: at("tiny-chat-first"), adapter, child })
      assert.isBelow(elsewhere.withinUlpMin, 0.999)
      const upon = compareAnswers({ child: ofChild, adapter: ofChild, base: ofBase }, { ...circumstances, merged: elsewhere }, 0)
      assert.strictEqual(upon.fidelity.tier, "approximate")
      assert.strictEqual(upon.failure?.code, "fidelity_failed")
      assert.match(upon.failure?.text ?? "", /^The merged weights do not match this base and adapter: /)
    }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)),
  1_200_000
)
