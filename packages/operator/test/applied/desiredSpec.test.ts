import { assert, it } from "@effect/vitest"
import type { ServingRequest } from "@seatrial/domain"
import { toDesiredSpec } from "../../src/applied/desiredSpec.ts"
import { toSpecServing } from "../../src/resources/ModelDeployment.ts"

const every: Required<ServingRequest> = {
  runtime: "vllm",
  host_class: ["h100", "h200"],
  max_context: 8_192,
  kv_cache_dtype: "fp8",
  yarn: { factor: 2, original_context: 4_096 },
  hold_seconds: 60,
  engine_flags: { seed: 1 }
}

it("an applied object carries each field of a request, and an object of a run shows it", () => {
  const source = { repo: "acme/tiny" }
  assert.deepStrictEqual(toDesiredSpec({ source, serving: toSpecServing(every) }).serving, every)
  for (const host_class of ["h100", "any"]) {
    assert.deepStrictEqual(toDesiredSpec({ source, serving: toSpecServing({ host_class }) }).serving, { host_class })
  }
})
