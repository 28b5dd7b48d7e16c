import { assert, it } from "@effect/vitest"
import { CatalogModel, CompletionCounts, DeploymentId, Receipt, TokenCountAnswer } from "@seatrial/domain"
import { Pod } from "@seatrial/kube"
import { enginePodName } from "@seatrial/operator"
import { Effect, Option, Schema } from "effect"
import { bodyOf } from "../Caller.ts"
import { runCommand } from "../ChildProgram.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "../chat.ts"
import { objectsOfRuns } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { openSystem } from "../openSystem.ts"
import { source } from "../Served.ts"

const Derived = Schema.Struct({
  kind: Schema.Literal("derived"),
  serving: Schema.Struct({ runtime: Schema.String, engine_flags: Schema.Record(Schema.String, Schema.Json) })
})
const decodeId = Schema.decodeUnknownSync(DeploymentId)
const Models = Schema.Struct({ data: Schema.Array(CatalogModel) })
const Named = Schema.Struct({ model: Schema.String })
const Cut = Schema.Struct({ usage: CompletionCounts })

it.live(
  "on simulated GPUs a model is served with the command lines of vLLM and SGLang, and its results are marked as simulated",
  () =>
    Effect.gen(function* () {
      const { folder, caller, kube } = yield* openSystem("sim-large")
      for (const [runtime, version, limit] of [
        ["vllm", "simulated-vllm-0.33.0", "max_num_seqs"],
        ["sglang", "simulated-sglang-0.5.23", "max_running_requests"]
      ] as const) {
        // A context that requires YaRN. The trial uses all of it.
        const serving = { runtime, host_class: "sim-large", max_context: 2_048, yarn: { factor: 2 }, engine_flags: { [limit]: 16 } }
        const previewed = yield* eventually("a preview", caller.call("POST", "/v1/deployment-previews", { source, serving }), ({ status }) => status === 200)
        const preview = bodyOf(Derived, previewed)
        // The chosen settings can be used as is.
        assert.strictEqual(preview.serving.engine_flags[limit], 16)
        assert.isAbove(Object.keys(preview.serving.engine_flags).length, 2)
        const operation = yield* caller.deploy({ source, serving: preview.serving, model_name: `tiny-${runtime}` })
        const ended = yield* caller.finished(operation.id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        assert.strictEqual(ended.revision?.engine_version, version)
        const pod = Option.getOrThrow(yield* kube.get(Pod, enginePodName(decodeId(operation.id)), "seatrial"))
        assert.match(JSON.stringify(pod.spec), runtime === "vllm" ? /"vllm","serve"/ : /"-m","sglang\.launch_server"/)

        const completion = yield* ask(caller, ended.model)
        assert.isNotEmpty(wholeOf(completion).text)
        assert.strictEqual(streamOf(yield* ask(caller, ended.model, { stream: true })).text, wholeOf(completion).text)
        const receipt = yield* eventually("the receipt", caller.call("GET", `/v1/receipts/${requestIdOf(completion)}`), ({ status }) => status === 200)
        assert.strictEqual(bodyOf(Receipt, receipt).engine_version, version)
        const { data } = yield* caller.read("/v1/models", Models)
        assert.deepInclude(
          data.find(({ id }) => id === ended.model),
          { engine: runtime, engine_version: version }
        )
        // An answer may have the rest of the context, whether the engine truncates or refuses longer ones.
        const length = (ended.revision?.max_model_len ?? 0) - 24
        const long = { model: ended.model, prompt: Array.from({ length }, () => 7), max_tokens: 500 }
        const cut = yield* caller.call("POST", "/v1/completions", long)
        assert.strictEqual(cut.status, 200, cut.text)
        const { usage } = bodyOf(Cut, cut)
        assert.strictEqual(usage.prompt_tokens, length)
        assert.isAtMost(usage.completion_tokens, 24)
        if (runtime !== "vllm") continue

        // The engine accepts only the names that it was started with and reports the first one. Every path must return the requested name.
        const slug = ended.model.slice(ended.model.indexOf("/") + 1)
        const engines = yield* objectsOfRuns(kube)
        const models = (verb: string, ...more: ReadonlyArray<string>) =>
          runCommand(["admin", "models", verb, "--org", "local", slug, ...more], { SEATRIAL_STATE: folder })
        const answersAs = Effect.fnUntraced(function* (name: string) {
          yield* eventually(`${name} answers`, ask(caller, name), ({ status }) => status === 200)
          const input = { model: name, max_tokens: 8, messages: [{ role: "user", content: "What does a sea trial show?" }] }
          const message = yield* caller.call("POST", "/v1/messages", input)
          assert.strictEqual(message.status, 200, message.text)
          assert.strictEqual(bodyOf(Named, message).model, name)
          const counted = yield* caller.call("POST", "/v1/messages/count_tokens", { model: name, messages: input.messages })
          assert.strictEqual(counted.status, 200, counted.text)
          assert.isAbove(bodyOf(TokenCountAnswer, counted).input_tokens, 0)
          const response = yield* caller.call("POST", "/v1/responses", { model: name, max_output_tokens: 8, input: "What does a sea trial show?" })
          assert.strictEqual(bodyOf(Named, response).model, name)
          assert.strictEqual(wholeOf(yield* ask(caller, name)).model, name)
          const streamed = yield* caller.call("POST", "/v1/messages", { ...input, stream: true })
          const own = `"model":${JSON.stringify(name)}`
          assert.include(streamed.text, own)
          assert.notMatch(streamed.text.replaceAll(own, ""), /"model":/)
        })
        yield* answersAs(ended.model)
        const rates = ["--input", "1000000", "--output", "3000000", "--cache-read", "0", "--cache-write", "0"]
        yield* models("publish", ...rates, "--yes")
        yield* answersAs(slug)
        yield* models("unpublish", "--yes")
        yield* answersAs(ended.model)
        assert.deepStrictEqual(yield* objectsOfRuns(kube), engines)
      }
    }).pipe(Effect.scoped),
  600_000
)
