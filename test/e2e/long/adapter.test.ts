import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Receipt } from "@seatrial/domain"
import { writeTrained } from "@seatrial/reference-engine/sample"
import { Effect, Schema } from "effect"
import { bodyOf, makeCaller } from "../Caller.ts"
import { startProgram } from "../ChildProgram.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "../chat.ts"
import { eventually } from "../eventually.ts"
import { openSystem } from "../openSystem.ts"

const source = { kind: "model_hub", repo: "seatrial/tiny-chat-adapter" } as const
const Derived = Schema.Struct({
  kind: Schema.Literal("derived"),
  source: Schema.Struct({ repo: Schema.String, commit: Schema.String }),
  serving: Schema.Json,
  weights_bytes: Schema.Int
})
const Described = Schema.Struct({ sha: Schema.String })

/** The answers of the merged model in a separate reference engine. */
const answersOfMerged = Effect.fnUntraced(function* (folder: string, prompts: ReadonlyArray<string>) {
  const model = join(folder, "merged")
  writeTrained(model, "tiny-chat-sailor")
  const words = [`--model=${model}`, "--served-model-name=merged", "--host=127.0.0.1", "--port=0", "--gpu-memory-bytes=268435456", "--max-model-len=512"]
  const program = yield* startProgram(["packages/reference-engine/src/main.ts", ...words], {})
  const address = yield* eventually(
    "the merged model is ready",
    Effect.sync(() => /on (http:\/\/[\d.:]+)/.exec(program.output())?.[1]),
    (found) => found !== undefined
  )
  const caller = makeCaller(address ?? "", "none")
  return yield* Effect.forEach(prompts, (content) => Effect.map(ask(caller, "merged", asking(content)), (answer) => wholeOf(answer).text))
})

const prompts = ["What does a sea trial show?", "What is the capital of France?", "Who steers the ship?"]
const asking = (content: string) => ({ messages: [{ role: "user", content }], max_tokens: 24 })

it.live(
  "an adapter is previewed and deployed on every runtime, and answers like the merged model",
  () =>
    Effect.gen(function* () {
      const { folder, state, caller } = yield* openSystem("sim-small", "sim-large")
      const expected = yield* answersOfMerged(folder, prompts)
      const described = yield* Effect.promise(() => fetch(`${state.hub}/api/models/seatrial/tiny-chat`).then((response) => response.json()))
      const baseCommit = Schema.decodeUnknownSync(Described)(described).sha

      const own = yield* caller.finished(
        (yield* caller.deploy({ source: { kind: "model_hub", repo: "seatrial/tiny-chat" }, serving: { host_class: "sim-small", max_context: 512 } })).id
      )
      assert.deepStrictEqual([own.status, own.failure_detail], ["activated", null])
      const base = yield* Effect.forEach(prompts, (content) => Effect.map(ask(caller, own.model, asking(content)), (answer) => wholeOf(answer).text))
      assert.notDeepEqual(base, expected)

      for (const [runtime, host_class] of [
        ["reference", "sim-small"],
        ["vllm", "sim-large"],
        ["sglang", "sim-large"]
      ] as const) {
        const input = { source, serving: { runtime, host_class, max_context: 512 } }
        const preview = bodyOf(Derived, yield* caller.call("POST", "/v1/deployment-previews", input))
        assert.strictEqual(preview.source.repo, source.repo)
        const operation = yield* caller.deploy({ source, serving: preview.serving, model_name: `tuned-${runtime}` })
        const ended = yield* caller.finished(operation.id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null], runtime)
        assert.strictEqual(ended.hf_revision, preview.source.commit)
        assert.include(
          ended.checks.filter(({ passed }) => passed).map(({ name }) => name),
          "adapter_effect"
        )

        const answers = yield* Effect.forEach(prompts, (content) => ask(caller, ended.model, asking(content)))
        assert.deepStrictEqual(
          answers.map((answer) => wholeOf(answer).text),
          expected,
          runtime
        )
        assert.deepStrictEqual(new Set(answers.map((answer) => wholeOf(answer).model)), new Set([ended.model]))
        assert.strictEqual(streamOf(yield* ask(caller, ended.model, { ...asking(prompts[0] ?? ""), stream: true })).text, expected[0])

        const id = requestIdOf(answers[0] ?? assert.fail())
        const receipt = bodyOf(Receipt, yield* eventually("the receipt", caller.call("GET", `/v1/receipts/${id}`), ({ status }) => status === 200))
        assert.deepInclude(receipt, { hf_revision: preview.source.commit, base_hf_revision: baseCommit, adapter_hf_revision: preview.source.commit })
        assert.match(receipt.adapter_content_hash ?? "", /^[0-9a-f]{64}$/)
      }
      const refused = yield* caller.call("POST", "/v1/deployment-previews", {
        source,
        serving: { runtime: "vllm", host_class: "sim-large", engine_flags: { lora_modules: "x=y" } }
      })
      assert.strictEqual(refused.status, 400)
    }).pipe(Effect.scoped),
  600_000
)
