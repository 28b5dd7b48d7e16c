import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { parseAdapterConfig } from "../src/adapterConfig.ts"

const plain = { peft_type: "LORA", task_type: "CAUSAL_LM", r: 8, lora_alpha: 16, target_modules: ["q_proj"] }
const reasonOf = (config: unknown) => {
  const changed: typeof plain = JSON.parse(JSON.stringify(config))
  return Result.match(parseAdapterConfig(changed), { onFailure: ({ reason }) => reason, onSuccess: () => "taken" })
}

describe("adapter_config.json", () => {
  it("is accepted with only its required members, and with settings that have no effect", () => {
    for (const more of [{}, { lora_dropout: 0.1, megatron_core: "megatron.core" }, { use_dora: false, modules_to_save: null }]) {
      assert.strictEqual(reasonOf({ ...plain, ...more }), "taken")
    }
  })

  it("is refused in a sentence for any content, including names of every object's own members", () => {
    const odd: ReadonlyArray<unknown> = [{ toString: 1 }, { valueOf: null, toString: null }, [], {}, 1, true]
    for (const value of odd) for (const name of Object.keys(plain)) assert.match(reasonOf({ ...plain, [name]: value }), /^(taken|[A-Z].+\.)$/)
    for (const name of ["constructor", "toString", "valueOf", "hasOwnProperty"]) assert.include(reasonOf({ ...plain, [name]: 1 }), `sets ${name}`)
    assert.include(reasonOf({ ...plain, use_dora: true }), "DoRA")
  })

  it("is refused with the invalid member, its value and the required form", () => {
    assert.strictEqual(reasonOf({ ...plain, lora_alpha: 0 }), "Its adapter_config.json has 0 for lora_alpha, which must be a number above 0.")
    assert.strictEqual(reasonOf({ ...plain, r: undefined }), "Its adapter_config.json lacks r, which must be a whole number from 1 to 8192.")
    assert.include(reasonOf({ ...plain, alpha_pattern: { q_proj: -1 } }), 'has {"q_proj":-1} for alpha_pattern, which must be a number above 0 for each')
    assert.include(reasonOf({ ...plain, layers_to_transform: "1" }), 'has "1" for layers_to_transform, which must be a layer\'s number or a list')
  })
})
