import { assert, it } from "@effect/vitest"
import { isFinished, Receipt } from "@seatrial/domain"
import { Effect, Schedule, Schema } from "effect"
import { bodyOf, makeCaller } from "../e2e/Caller.ts"
import { ask, requestIdOf, streamOf, wholeOf } from "../e2e/chat.ts"
import { makeStateFolder, startSystem } from "../e2e/LocalSystem.ts"
import { installVllm } from "../engines/vllm/installVllm.ts"
import { smolHub, smolName } from "./smolFiles.ts"

const Preview = Schema.Struct({ kind: Schema.Literal("derived"), fit: Schema.Struct({ verdict: Schema.String }) })

const source = { kind: "model_hub", repo: smolName } as const
const serving = { host_class: "cpu-vllm", max_context: 1_024 } as const

it.live("in the local system SmolLM2-135M-Instruct goes from a preview over its reference and its trial to traffic on vLLM", () =>
  Effect.gen(function* () {
    const folder = yield* makeStateFolder
    const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false" }, ["--hub-folder", smolHub(), "--vllm", installVllm()])
    const caller = makeCaller(state.address, state.api_key)
    const preview = yield* caller.call("POST", "/v1/deployment-previews", { source, serving })
    assert.strictEqual(bodyOf(Preview, preview).fit.verdict, "fits", preview.text)

    const { id } = yield* caller.deploy({ source, serving })
    const ended = yield* caller.deployment(id).pipe(Effect.repeat({ schedule: Schedule.spaced("5 seconds"), until: ({ status }) => isFinished(status) }))
    yield* Effect.logInfo(ended.checks.map(({ detail = "", name, passed }) => `${passed ? "passed" : "failed"} ${name}: ${detail}`).join("\n"))
    assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
    assert.match(ended.checks.find(({ name }) => name === "reference_agrees")?.detail ?? "", /from Transformers 5\.\d+\.\d+/u)

    for (const stream of [false, true]) {
      const answer = yield* ask(caller, ended.model, { stream })
      assert.isNotEmpty(stream ? streamOf(answer).text : wholeOf(answer).text)
      const receipt = yield* caller.read(`/v1/receipts/${requestIdOf(answer)}`, Receipt)
      assert.deepInclude(receipt, { model: ended.model, engine_version: "vllm-0.33.0", status_code: 200, streamed: stream })
    }
  }).pipe(Effect.scoped)
)
