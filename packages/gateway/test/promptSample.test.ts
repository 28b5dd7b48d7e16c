import { assert, describe, it } from "@effect/vitest"
import { type PromptSample, promptOf, samplePrompt } from "../src/PromptSample.ts"
import type { CheckedRequest } from "../src/vocabulary/checkRequest.ts"

const requestOf = (body: object, images: Pick<CheckedRequest, "imageCount" | "withoutImages"> = { imageCount: 0, withoutImages: null }): CheckedRequest => ({
  endpoint: "/v1/chat/completions",
  model: "acme/tiny",
  stream: true,
  wantsUsage: false,
  choices: 1,
  outputLimit: null,
  prompts: 1,
  givenTokens: null,
  cachedUnknown: false,
  images: [],
  ...images,
  engineBody: JSON.stringify(body)
})

const textOf = (sample: PromptSample) => promptOf(sample).text

describe("the sample of a prompt", () => {
  it("is the complete text of a short prompt, without settings", () => {
    const of = (body: object) => textOf(samplePrompt(requestOf(body)))
    assert.deepStrictEqual(of({ prompt: "one two", max_tokens: 7, user: "u" }), "one two")
    assert.deepStrictEqual(of({ prompt: ["one", "two"] }), "one\ntwo")
    assert.deepStrictEqual(of({ instructions: "a", input: "b", tools: [{ name: "t" }] }), 'b\na\n{"name":"t"}')
  })

  it("has the texts of messages without the JSON around them, and the tokens that a chat template writes around each", () => {
    const messages = [
      { role: "user", content: [{ type: "text", text: "one two" }] },
      { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "look", arguments: '{"at":1}' } }] },
      { role: "tool", tool_call_id: "call_1", content: "three" }
    ]
    assert.deepStrictEqual(promptOf(samplePrompt(requestOf({ messages }))), { text: 'one two\nlook\n{"at":1}\nthree', templateTokens: 9 })
    const input = [{ role: "user", content: "one two" }]
    assert.deepStrictEqual(promptOf(samplePrompt(requestOf({ input, instructions: "three" }))), { text: "one two\nthree", templateTokens: 3 })
  })

  it("represents a long prompt, wherever its dense text is", () => {
    // One half has a token per two characters, the other half one per hundred.
    const dense = "a ".repeat(200_000)
    const sparse = `${"b".repeat(99)} `.repeat(4_000)
    const expected = 200_000 + 4_000
    for (const content of [dense + sparse, sparse + dense]) {
      const sample = samplePrompt(requestOf({ messages: [{ role: "user", content }] }))
      assert.isAtMost(sample.json.length, 16_384)
      const counted = textOf(sample).split(" ").length * sample.scale
      assert.isBelow(Math.abs(counted / expected - 1), 0.2)
    }
  })

  it("has no half characters, which tokenizers reject", () => {
    const { json } = samplePrompt(requestOf({ prompt: "🌊".repeat(100_000) }))
    assert.isTrue(json.isWellFormed())
  })

  it("has no images, which are counted separately", () => {
    const body = { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(1_000_000)}` } }] }] }
    const withoutImages = JSON.stringify({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "image:0" } }] }] })
    const sample = samplePrompt(requestOf(body, { imageCount: 1, withoutImages }))
    assert.deepStrictEqual([sample.images, sample.scale], [1, 1])
    assert.isBelow(textOf(sample).length, 200)
  })
})
