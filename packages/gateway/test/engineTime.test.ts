import { assert, describe, it } from "@effect/vitest"
import type { InferencePath } from "@seatrial/domain"
import { refusalOf, takenOf, targetWith } from "./vocabularyTargets.ts"

const user = { role: "user", content: "hi" }
const forChat = (schema: unknown) => ({ model: "m", messages: [user], response_format: { type: "json_schema", json_schema: { name: "n", schema } } })
const tool = (name: string, parameters: unknown) => ({ type: "function", function: { name, parameters } })
const choices = (count: number, text = "c") => ({ enum: Array.from({ length: count }, (_, index) => `${text}${index}`) })
const object = (properties: Record<string, unknown>) => ({ type: "object", properties })

/** Requests with `schema`, by path, and the field that a refusal names. */
const withSchema: ReadonlyArray<readonly [InferencePath, param: string, (schema: unknown) => unknown]> = [
  ["/v1/chat/completions", "response_format.json_schema.schema", forChat],
  ["/v1/chat/completions", "tools[0].function.parameters", (schema) => ({ model: "m", messages: [user], tools: [tool("f", schema)] })],
  ["/v1/responses", "text.format.schema", (schema) => ({ model: "m", input: "hi", text: { format: { type: "json_schema", name: "n", schema } } })],
  ["/v1/responses", "tools[0].parameters", (schema) => ({ model: "m", input: "hi", tools: [{ type: "function", name: "f", parameters: schema }] })],
  ["/v1/messages", "tools[0].input_schema", (schema) => ({ model: "m", max_tokens: 1, messages: [user], tools: [{ name: "f", input_schema: schema }] })],
  [
    "/v1/messages",
    "output_config.format.schema",
    (schema) => ({ model: "m", max_tokens: 1, messages: [user], output_config: { format: { type: "json_schema", schema } } })
  ]
]

describe("a request that would occupy the engine, while the requests of others wait, is refused before", () => {
  it("a conversation with more messages than the context has tokens", () => {
    const target = targetWith({ maxModelLen: 100 })
    const many = (count: number) => Array.from({ length: count }, () => user)
    for (const [endpoint, param, bodyOf] of [
      ["/v1/chat/completions", "messages", (messages: unknown) => ({ model: "m", messages })],
      ["/v1/responses", "input", (input: unknown) => ({ model: "m", input })],
      ["/v1/messages", "messages", (messages: unknown) => ({ model: "m", max_tokens: 1, messages })]
    ] as const) {
      takenOf(bodyOf(many(100)), endpoint, target)
      const { code, param: at } = refusalOf(bodyOf(many(101)), endpoint, target)
      assert.deepStrictEqual([code, at], ["context_length_exceeded", param])
    }
  })

  for (const [endpoint, param, bodyOf] of withSchema)
    it(`a schema in ${param} of ${endpoint} with too many values or too long texts`, () => {
      takenOf(bodyOf(object({ a: choices(9_000), b: { type: "string", description: "d".repeat(200_000) } })), endpoint)
      for (const schema of [object({ a: choices(10_000) }), object({ a: choices(2, "c".repeat(60_000)) })]) {
        const { code, param: at } = refusalOf(bodyOf(schema), endpoint)
        assert.deepStrictEqual([code, at], ["invalid_parameter", param])
      }
    })

  it("many schemas that are too large together", () => {
    const body = (count: number) => ({
      model: "m",
      messages: [user],
      tools: Array.from({ length: count }, (_, index) => tool(`f${index}`, object({ a: choices(900) })))
    })
    takenOf(body(11))
    assert.strictEqual(refusalOf(body(12)).param, "tools[11].function.parameters")
  })
})
