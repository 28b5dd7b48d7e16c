import { assert, describe, it } from "@effect/vitest"
import { refusesSampling } from "@seatrial/domain"
import { Result } from "effect"
import { parseJsonObject } from "../src/boundedJson.ts"

const parsed = (text: string) =>
  Result.match(parseJsonObject(new TextEncoder().encode(text), "config.json"), { onSuccess: (value): unknown => value, onFailure: ({ reason }) => reason })

describe("a configuration", () => {
  it("may have the numbers that only Python writes, as those of Mamba 2 do", () => {
    assert.deepStrictEqual(parsed('{"time_step_limit": [0.0, Infinity], "note": "NaN"}'), { time_step_limit: [0, Number.POSITIVE_INFINITY], note: "NaN" })
    assert.strictEqual(parsed('{"a": Infinite}'), "config.json is not valid JSON.")
  })

  it("is refused with a byte order mark, at which engines end", () => {
    assert.strictEqual(parsed('\ufeff{"a": 1}'), "config.json begins with a byte order mark, with which engines do not read it.")
  })
})

describe("a generation configuration", () => {
  it.each([
    ["50", false],
    ["-1", false],
    ["50.0", true],
    ["5e1", true],
    ["-1.0", true]
  ])("is told apart by whether Python reads its top_k as a whole number, which vLLM asks for: %s", (topK, isRefused) => {
    const bytes = new TextEncoder().encode(`{"temperature": 1.0, "top_k" : ${topK}, "note": "\\"top_k\\": 5.0"}`)
    const generation = Result.getOrThrow(parseJsonObject(bytes, "generation_config.json"))
    assert.strictEqual(refusesSampling(generation), isRefused)
    assert.deepInclude(generation, { temperature: 1, note: '"top_k": 5.0' })
  })
})
