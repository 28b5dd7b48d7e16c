import { assert, it } from "@effect/vitest"
import { Commit, revisionCapabilities } from "@seatrial/domain"
import { Schema } from "effect"
import { factsOf, tinyConfig } from "./anyModel.ts"
import { found } from "./realEngine.ts"

const facts = { ...factsOf({ ...tinyConfig }), chat_template: "{{ messages }}", commit: Schema.decodeSync(Commit)("c".repeat(40)) }

it("several choices are not served where all of them would be the same: by SGLang in the mode in which draws hang on the request's seed alone", () => {
  const served = (runtime: "sglang" | "vllm", engine_flags: Readonly<Record<string, boolean>>) =>
    Object.entries(revisionCapabilities(found(runtime), facts, { engine_flags }).supported_parameters_by_endpoint)
      .filter(([, fields]) => fields.includes("n"))
      .map(([path]) => path)
  const both = ["/v1/chat/completions", "/v1/completions"]
  assert.deepStrictEqual(served("sglang", { enable_deterministic_inference: true }), [])
  assert.deepStrictEqual(served("sglang", { enable_deterministic_inference: false }), both)
  assert.deepStrictEqual(served("sglang", {}), both)
  assert.deepStrictEqual(served("vllm", { batch_invariant: true }), both)
})
