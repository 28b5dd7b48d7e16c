import { assert, describe, it } from "@effect/vitest"
import { refusesSampling } from "@seatrial/domain"
import { Result } from "effect"
import { parseJsonObject } from "../src/boundedJson.ts"

const parsed = (text: string) =>
  Result.match(parseJsonObject(new TextEncoder().encode(text), "config.json"), { onSuccess: (value): unknown => value, onFailure: ({ reason }) => reason })

describe("a configuration", () => {
  it("may have the numbers that only Python writes, as in Mamba 2's", () => {
    assert.deepStrictEqual(parsed('{"time_step_limit": [0.0, Infinity], "note": "NaN"}'), { time_step_limit: [0, Number.POSITIVE_INFINITY], note: "NaN" })
    assert.strictEqual(parsed('{"a": Infinite}'), "config.json is not valid JSON.")
  })

  it.each([
    ["4096.0", '{"hidden_size": 4096.0}', "hidden_size"],
    ["3.2e1", '{"text_config": {"num_hidden_layers" : 3.2e1}}', "num_hidden_layers"],
    ["2.0", '{"rope_theta": 10000.0, "eos_token_id": 2.0}', "eos_token_id"]
  ])("is refused with a size that is a float in Python, which no class of Transformers accepts: %s", (value, text, key) => {
    assert.strictEqual(parsed(text), `config.json gives ${key} as ${value}. Write it as a whole number without a decimal point: engines accept nothing else.`)
  })

  it("may have floats in other members, and may mention them in strings", () => {
    const text = '{"hidden_size": 4096, "rope_theta": 10000.0, "rope_scaling": {"factor": 8.0}, "note": "\\"hidden_size\\": 4096.0"}'
    assert.deepStrictEqual(parsed(text), { hidden_size: 4096, rope_theta: 10_000, rope_scaling: { factor: 8 }, note: '"hidden_size": 4096.0' })
  })

  it("is refused with a byte order mark, because engines fail at it", () => {
    assert.strictEqual(parsed('\ufeff{"a": 1}'), "config.json begins with a byte order mark, which engines do not accept.")
  })
})

describe("a generation configuration", () => {
  it.each([
    ["50", false],
    ["-1", false],
    ["50.0", true],
    ["5e1", true],
    ["-1.0", true]
  ])("is distinguished by whether Python reads its top_k as an integer, as vLLM requires: %s", (topK, isRefused) => {
    const bytes = new TextEncoder().encode(`{"temperature": 1.0, "top_k" : ${topK}, "note": "\\"top_k\\": 5.0"}`)
    const generation = Result.getOrThrow(parseJsonObject(bytes, "generation_config.json"))
    assert.strictEqual(refusesSampling(generation), isRefused)
    assert.deepInclude(generation, { temperature: 1, note: '"top_k": 5.0' })
  })
})
