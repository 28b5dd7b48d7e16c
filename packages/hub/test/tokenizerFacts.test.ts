import { assert, describe, it } from "@effect/vitest"
import { Unreadable } from "../src/failures.ts"
import { scanTokenizer } from "../src/tokenizerFacts.ts"

const read = (value: unknown, piece = 7) => {
  const sink = scanTokenizer("tokenizer.json")
  const bytes = new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))
  for (let at = 0; at < bytes.length; at += piece) sink.push(bytes.subarray(at, at + piece))
  return sink.end()
}
const highest = (value: unknown) => read(value)?.highest

describe("a tokenizer.json", () => {
  it("has the highest id of its vocabulary, without those that were added, wherever they stand", () => {
    const vocab = { a: 0, b: 5, c: 6, "<x>": 70_000 }
    assert.strictEqual(highest({ model: { type: "BPE", vocab, merges: [["a", "b"], "a b"] } }), 70_000)
    for (const made of [
      { added_tokens: [{ id: 70_000, content: "<x>" }, { id: 6 }], model: { vocab } },
      { model: { vocab }, added_tokens: [{ id: 6 }, { content: "<x>", id: 70_000 }] }
    ])
      assert.strictEqual(highest(made), 5)
    assert.strictEqual(
      highest({
        model: {
          type: "Unigram",
          vocab: [
            ["a", -1.5],
            ["b", 2],
            ["c", 9]
          ]
        },
        added_tokens: [{ id: 2 }]
      }),
      1
    )
    assert.strictEqual(highest({ model: { vocab: {} } }), -1)
    assert.strictEqual(highest({ model: { vocab: { a: 1, b: 2 ** 40 } } }), 2 ** 40)
  })

  it("has no step that no engine reads, or is told by it", () => {
    const model = { vocab: { type: 1 } }
    assert.strictEqual(read({ model, pre_tokenizer: { type: "Odd" } })?.unknownStep, "pre_tokenizer Odd")
    const within = (step: object) => ({ type: "Sequence", pretokenizers: [{ type: "Digits", pattern: { type: "Odd" } }, step] })
    assert.isNull(read({ normalizer: null, pre_tokenizer: within({ type: "Split", pattern: { type: "Odd" } }), model })?.unknownStep)
    assert.strictEqual(read({ normalizer: null, pre_tokenizer: within({ type: "Odd" }), model })?.unknownStep, "pre_tokenizer Odd")
    assert.strictEqual(read({ model, pre_tokenizer: within(within({ type: "Odd" })) })?.unknownStep, "pre_tokenizer Odd")
    for (const name of ["constructor", "__proto__", "toString"]) assert.isNull(read(`{"${name}":{"type":"x"},"model":{"vocab":{"${name}":3}}}`)?.unknownStep)
  })

  it("has no model that no engine reads, or is told by it", () => {
    for (const type of ["BPE", "Unigram", "WordLevel", "WordPiece"]) assert.isNull(read({ model: { type, vocab: { type: 1 } } })?.unknownStep)
    assert.isNull(read({ model: { vocab: {}, decoder: { type: "Odd" } } })?.unknownStep)
    for (const type of ["Foo", "bpe", ""]) assert.strictEqual(read({ model: { type, vocab: {} } })?.unknownStep, `model ${type}`)
    for (const type of [5, null, { type: "BPE" }, ["BPE"]]) assert.strictEqual(read({ model: { vocab: {}, type } })?.unknownStep, "model whose type is no text")
  })

  it("is none without a model, and is refused where it is no JSON", () => {
    for (const none of ["{}", '{"model":5}', '{"model":[]}', "[]", "5"]) assert.isNull(read(none), none)
    for (const broken of ["", "{not json", '{"model":{}', '{"model":{}}}']) assert.throws(() => read(broken), Unreadable, undefined, broken)
  })
})
