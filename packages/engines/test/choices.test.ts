import { assert, it } from "@effect/vitest"
import { Commit, revisionCapabilities } from "@seatrial/domain"
import { Schema } from "effect"
import { tinyRopeConfig } from "../../../test/models/modelConfigs.ts"
import { factsOf } from "./anyModel.ts"
import { realEngine } from "./realEngine.ts"

const facts = { ...factsOf({ ...tinyRopeConfig }), chat_template: "{{ messages }}", commit: Schema.decodeSync(Commit)("c".repeat(40)) }

const both = ["/v1/chat/completions", "/v1/completions"]
const servedOn = (field: string, runtime: "sglang" | "vllm", engine_flags: Readonly<Record<string, boolean>> = {}) =>
  Object.entries(revisionCapabilities(realEngine(runtime), facts, { engine_flags }).supported_parameters_by_endpoint)
    .filter(([, fields]) => fields.includes(field))
    .map(([path]) => path)

it("several choices are not served if all would be equal: by SGLang in deterministic mode", () => {
  assert.deepStrictEqual(servedOn("n", "sglang", { enable_deterministic_inference: true }), [])
  assert.deepStrictEqual(servedOn("n", "sglang", { enable_deterministic_inference: false }), both)
  assert.deepStrictEqual(servedOn("n", "sglang"), both)
  assert.deepStrictEqual(servedOn("n", "vllm", { batch_invariant: true }), both)
})

it("a seed is not served if the engine ignores it: by SGLang in all other modes", () => {
  assert.deepStrictEqual(servedOn("seed", "sglang"), [])
  assert.deepStrictEqual(servedOn("seed", "sglang", { enable_deterministic_inference: true }), both)
  assert.deepStrictEqual(servedOn("seed", "vllm"), both)
})
