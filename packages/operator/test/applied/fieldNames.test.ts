import { assert, describe, it } from "@effect/vitest"
import { fieldPath } from "../../src/applied/fieldNames.ts"

describe("the messages of an applied object", () => {
  it("name the path of the invalid field", () => {
    assert.deepStrictEqual(
      ["serving.engine_flags.gpu_memory_utilization", "serving.runtime", "serving.host_class", "serving.kv_cache_dtype"].map((param) =>
        fieldPath(param, false)
      ),
      ["spec.serving.engineFlags.gpu_memory_utilization", "spec.serving.runtime", "spec.serving.hostClass", "spec.serving.kvCacheDtype"]
    )
    assert.strictEqual(fieldPath("serving.host_class", true), "spec.serving.hostClasses")
  })
})
