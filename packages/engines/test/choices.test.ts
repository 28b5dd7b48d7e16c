import { assert, it } from "@effect/vitest"
import { Commit, revisionCapabilities } from "@seatrial/domain"
import { Schema } from "effect"
import { factsOf, tinyConfig } from "./anyModel.ts"
import { found } from "./realEngine.ts"

const facts = { ...factsOf({ ...tinyConfig }), chat_template: "{{ messages }}", commit: Schema.decodeSync(Commit)("c".repeat(40)) }

const both = ["/v1/chat/completions", "/v1/completions"]
const servedOn = (field: string, runtime: "sglang" | "vllm", engine_flags: Readonly<Record<string, boolean>> = {}) =>
  Object.entries(revisionCapabilities(found(runtime), facts, { engine_flags }).supported_parameters_by_endpoint)
    .filter(([, fields]) => fields.includes(field))
    .map(([path]) => path)

it("several choices are not served where all of them would be the same: by SGLang in the mode in which draws hang on the request's seed alone", () => {
  assert.deepStrictEqual(servedOn("n", "sglang", { enable_deterministic_inference: true }), [])
  assert.deepStrictEqual(servedOn("n", "sglang", { enable_deterministic_inference: false }), both)
  assert.deepStrictEqual(servedOn("n", "sglang"), both)
  assert.deepStrictEqual(servedOn("n", "vllm", { batch_invariant: true }), both)
})

it("a seed is not served where it is ignored: by SGLang in every other mode", () => {
  assert.deepStrictEqual(servedOn("seed", "sglang"), [])
  assert.deepStrictEqual(servedOn("seed", "sglang", { enable_deterministic_inference: true }), both)
  assert.deepStrictEqual(servedOn("seed", "vllm"), both)
})
