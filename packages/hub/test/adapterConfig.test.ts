import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { parseAdapterConfig } from "../src/adapterConfig.ts"

const plain = { peft_type: "LORA", task_type: "CAUSAL_LM", r: 8, lora_alpha: 16, target_modules: ["q_proj"] }
const reasonOf = (config: unknown) => {
  const given: typeof plain = JSON.parse(JSON.stringify(config))
  return Result.match(parseAdapterConfig(given), { onFailure: ({ reason }) => reason, onSuccess: () => "taken" })
}

describe("adapter_config.json", () => {
  it("is taken with no more than it needs, and with settings that change nothing", () => {
    for (const more of [{}, { lora_dropout: 0.1, megatron_core: "megatron.core" }, { use_dora: false, modules_to_save: null }]) {
      assert.strictEqual(reasonOf({ ...plain, ...more }), "taken")
    }
  })

  it("is refused in a sentence whatever stands in it, names of every object's own members too", () => {
    const odd: ReadonlyArray<unknown> = [{ toString: 1 }, { valueOf: null, toString: null }, [], {}, 1, true]
    for (const value of odd) for (const name of Object.keys(plain)) assert.match(reasonOf({ ...plain, [name]: value }), /^(taken|[A-Z].+\.)$/)
    for (const name of ["constructor", "toString", "valueOf", "hasOwnProperty"]) assert.include(reasonOf({ ...plain, [name]: 1 }), `sets ${name}`)
    assert.include(reasonOf({ ...plain, use_dora: true }), "DoRA")
  })
})
