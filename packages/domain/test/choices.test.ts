import { assert, describe, it } from "@effect/vitest"
import { choicesOf, type ServingRequest, type ServingSettings } from "../src/index.ts"

const settings: ServingSettings = {
  runtime: "vllm",
  host_class: "h100",
  max_context: 8_192,
  kv_cache_dtype: "auto",
  engine_flags: { max_num_seqs: 64, gpu_memory_utilization: 0.92, tool_call_parser: "hermes" }
}
const engine = { readsGenerationConfig: true }
const files = [{ path: "generation_config.json", size: 2, blob_id: "b".repeat(40), sha256: null }]

describe("the source of a revision's settings", () => {
  it("is the caller, the fit, the host class, the model, a default or the repository", () => {
    assert.deepStrictEqual(choicesOf({ max_context: 8_192, engine_flags: { max_num_seqs: 64 } }, settings, { files }, engine), {
      runtime: "host_class",
      host_class: "fit",
      max_context: "request",
      kv_cache_dtype: "default",
      "engine_flags.max_num_seqs": "request",
      "engine_flags.gpu_memory_utilization": "default",
      "engine_flags.tool_call_parser": "model",
      sampling_defaults: "repository"
    })
  })
  it("is inherited for settings that a redeploy keeps from an earlier revision", () => {
    const inherited = { runtime: "host_class", max_context: "fit", kv_cache_dtype: "request", "engine_flags.max_num_seqs": "default" } as const
    const sent = { ...settings, engine_flags: { max_num_seqs: 64, gpu_memory_utilization: 0.92 } }
    assert.deepStrictEqual(choicesOf(sent, settings, { files: [] }, engine, inherited), {
      ...inherited,
      host_class: "request",
      "engine_flags.gpu_memory_utilization": "request",
      "engine_flags.tool_call_parser": "model"
    })
  })
  it("is the caller for all requested settings, and the repository for sampling defaults only if the engine reads them", () => {
    const sent = { ...settings, yarn: { factor: 2 }, hold_seconds: 60 }
    const { sampling_defaults, ...all } = choicesOf(sent, sent, { files }, engine)
    assert.deepStrictEqual([...new Set(Object.values(all))], ["request"])
    assert.strictEqual(sampling_defaults, "repository")
    assert.notProperty(choicesOf({}, settings, { files: [] }, engine), "sampling_defaults")
    assert.notProperty(choicesOf({}, { ...settings, engine_flags: { generation_config: "vllm" } }, { files }, engine), "sampling_defaults")
  })

  it("is known for each field of a request", () => {
    const everyField: Required<ServingRequest> = {
      runtime: "vllm",
      host_class: "h100",
      max_context: 8_192,
      kv_cache_dtype: "fp8",
      yarn: { factor: 2 },
      hold_seconds: 60,
      engine_flags: { max_num_seqs: 64 }
    }
    const { engine_flags, ...fields } = everyField
    const choices = choicesOf(everyField, { ...settings, ...everyField, host_class: "h100" }, { files: [] }, engine)
    for (const field of [...Object.keys(fields), ...Object.keys(engine_flags).map((flag) => `engine_flags.${flag}`)])
      assert.strictEqual(choices[field], "request", field)
  })
})
