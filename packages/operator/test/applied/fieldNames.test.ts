import { assert, describe, it } from "@effect/vitest"
import { fieldPath, inFieldNames, withFieldNames } from "../../src/applied/fieldNames.ts"
import { run } from "../observations.ts"

describe("the messages of an applied object", () => {
  it("use the object's field names and are otherwise unchanged", () => {
    const texts: ReadonlyArray<readonly [api: string, object: string]> = [
      ["Ask for max_context 1024, or extend it with yarn.", "Ask for spec.serving.maxContext 1024, or extend it with yarn."],
      ["with an 8-bit KV cache (kv_cache_dtype fp8) on h100", "with an 8-bit KV cache (spec.serving.kvCacheDtype fp8) on h100"],
      ["yarn.original_context is 4096", "spec.serving.yarn.originalContext is 4096"],
      ["set serving.max_context instead", "set spec.serving.maxContext instead"],
      ["fewer max_num_seqs: host_class_unknown", "fewer max_num_seqs: host_class_unknown"],
      ["my_max_context and a.max_context", "my_max_context and a.max_context"]
    ]
    for (const [api, object] of texts) {
      assert.strictEqual(inFieldNames(api), object)
      assert.strictEqual(inFieldNames(object), object)
    }
  })

  it("name the path of the invalid field", () => {
    assert.deepStrictEqual(["serving.engine_flags.gpu_memory_utilization", "serving.runtime", "serving.host_class", "serving.kv_cache_dtype"].map(fieldPath), [
      "spec.serving.engineFlags.gpu_memory_utilization",
      "spec.serving.runtime",
      "spec.serving.hostClass",
      "spec.serving.kvCacheDtype"
    ])
  })

  it("are the API's messages if the run belongs to the API", () => {
    const failure = { code: "context_too_long" as const, text: "Ask for max_context 1024." }
    const history = [{ phase: "screening" as const, at: 0, reason: "max_context" }]
    const failed = { ...run, failure, history }
    assert.strictEqual(withFieldNames(failed), failed)
    const applied = withFieldNames({ ...failed, applied: { namespace: "seatrial", name: "tiny", current: null } })
    assert.strictEqual(applied.failure?.text, "Ask for spec.serving.maxContext 1024.")
    assert.deepStrictEqual(applied.history, [{ phase: "screening", at: 0, reason: "spec.serving.maxContext" }])
  })
})
