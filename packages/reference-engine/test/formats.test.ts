import { Ajv } from "ajv"
import { Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { writeTrained } from "../sample/trained.ts"
import { begin, type Grammar, type GrammarState } from "../src/grammar/Grammar.ts"
import { anyObject } from "../src/grammar/json.ts"
import { schemaGrammar } from "../src/grammar/jsonSchema.ts"
import { Random } from "../src/Random.ts"
import { type EngineClient, serve } from "./engineClient.ts"
import { emptyDirectory } from "./smallModel.ts"

const string = { type: "string", maxLength: 12 }
const schemas: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  { type: "object", properties: { a: string, b: { type: ["integer", "null"] } }, required: ["b"], additionalProperties: false },
  { type: "array", items: { enum: ["x", "y z", 3, null, { k: [1, "é"] }] }, minItems: 2, maxItems: 4 },
  { anyOf: [{ type: "boolean" }, { const: "only" }, { type: "integer", minimum: -3, maximum: 12 }] },
  {
    $ref: "#/$defs/tree",
    $defs: { tree: { type: "object", properties: { next: { anyOf: [{ $ref: "#/$defs/tree" }, { type: "null" }] } }, required: ["next"] } }
  },
  { type: "object", properties: { a: { type: "number" }, b: string, c: string }, additionalProperties: false },
  { type: "object", additionalProperties: { type: "integer" } },
  { type: "array", items: { anyOf: [string, string, { type: "string", minLength: 2, maxLength: 5 }] }, minItems: 6, maxItems: 8 }
]

/** A random text of a grammar, byte by byte. The longer it is, the sooner it ends. */
const drawn = (grammar: Grammar, random: Random): string => {
  let state: GrammarState = begin(grammar)
  const bytes: Array<number> = []
  for (;;) {
    const next = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => state.next(byte) !== null)
    if (state.mayEnd && (next.length === 0 || random.unit() < 0.5)) return Buffer.from(bytes).toString("utf8")
    // Prefers closing quotes and brackets, because a text could otherwise grow without limit.
    const ends = next.filter((byte) => '"]}n'.includes(String.fromCharCode(byte)))
    const from = ends.length > 0 && random.unit() < 0.3 ? ends : next
    const byte = from[Math.floor(random.unit() * from.length)] ?? 0
    bytes.push(byte)
    const after = state.next(byte)
    if (after === null) throw new Error("the grammar has a dead end")
    state = after
  }
}

describe("a grammar", () => {
  it.each(schemas.map((schema, i) => [i, schema] as const))("is valid by schema %i", (i, schema) => {
    const valid = new Ajv({ strict: false }).compile(schema)
    const random = new Random(i)
    const grammar = schemaGrammar(schema)
    for (let n = 0; n < 40; n++) {
      const text = drawn(grammar, random)
      expect(valid(JSON.parse(text)), text).toBe(true)
    }
  })

  it("accepts an object if any object is allowed", () => {
    for (let n = 0; n < 20; n++) expect(JSON.parse(drawn(anyObject, new Random(n)))).toBeTypeOf("object")
  })

  it("accepts common formatting", () => {
    const grammar = schemaGrammar(schemas[0])
    const takes = (text: string) => {
      let state: GrammarState | null = begin(grammar)
      for (const byte of Buffer.from(text)) state = state?.next(byte) ?? null
      return state?.mayEnd === true
    }
    for (const text of ['{"a": "x", "b": 12}', '{"a":"x","b":null}', '{"b":-3}', '{"a":"é\\u00e9","b":0}']) expect(takes(text), text).toBe(true)
    for (const text of ['{"a": "x"}', '{"b":01}', '{"b":1,"c":2}', '{"b":1', '{"a":"\ud800","b":1}', ""])
      expect(takes(text), text).toBe(text.includes("\ud800"))
  })
})

describe("a structured answer", () => {
  let engine: Awaited<ReturnType<typeof serve>>
  let client: EngineClient
  beforeAll(async () => {
    const directory = emptyDirectory()
    writeTrained(directory, "tiny-chat")
    engine = await serve(directory)
    client = engine.client
  })
  afterAll(() => engine.close())

  it("has the requested form, complete and streamed, greedy and sampled", async () => {
    const schema = { type: "object", properties: { colour: { enum: ["red", "green"] }, size: { type: "integer" } }, required: ["colour", "size"] }
    const valid = new Ajv().compile({ ...schema, additionalProperties: false })
    const format = { type: "json_schema", json_schema: { name: "x", schema } }
    for (const settings of [{}, { temperature: 1, seed: 5 }, { temperature: 1, seed: 6 }]) {
      const body = { response_format: format, max_tokens: 100, ...settings }
      const { choices } = await client.chat("Write a poem.", body)
      expect(choices[0].finish_reason).toBe("stop")
      expect(valid(JSON.parse(choices[0].message.content)), choices[0].message.content).toBe(true)
      const chunks = await client.stream("/v1/chat/completions", { messages: [{ role: "user", content: "Write a poem." }], ...body })
      expect(chunks.flatMap((chunk) => chunk.choices.map(({ delta }) => delta?.content ?? "")).join("")).toBe(choices[0].message.content)
    }
    const { choices } = await client.text("Q: What is the capital of France?\nA:", { response_format: { type: "json_object" }, max_tokens: 300 })
    expect(Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))(choices[0].text)).toBeTypeOf("object")
  })
})
