import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Unreadable } from "../src/failures.ts"
import { scanTokenizer } from "../src/tokenizerFacts.ts"

const read = (value: unknown, piece = 7) => {
  const sink = scanTokenizer("tokenizer.json")
  const bytes = new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value))
  for (let at = 0; at < bytes.length; at += piece) sink.push(bytes.subarray(at, at + piece))
  return sink.end()
}
const highest = (value: unknown) => read(value)?.highest
const model = { vocab: { type: 1 }, merges: [] }

/** The verdicts of tokenizers 0.23.3 on each of these texts (`Tokenizer.from_str`). */
const verdicts = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({ taken: Schema.Array(Schema.String), refused: Schema.Array(Schema.String) })))(
  readFileSync(new URL("./tokenizerVerdicts.json", import.meta.url), "utf8")
)

describe("a tokenizer.json", () => {
  it("has the highest id of its vocabulary, without added tokens in any position", () => {
    const vocab = { a: 0, b: 5, c: 6, "<x>": 70_000 }
    assert.strictEqual(highest({ model: { type: "BPE", vocab, merges: [["a", "b"], "a b"] } }), 70_000)
    for (const tokenizer of [
      { added_tokens: [{ id: 70_000, content: "<x>" }, { id: 6 }], model: { vocab } },
      { model: { vocab }, added_tokens: [{ id: 6 }, { content: "<x>", id: 70_000 }] }
    ])
      assert.strictEqual(highest(tokenizer), 5)
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

  it("is refused exactly if the tokenizers library refuses it", () => {
    for (const text of verdicts.taken) assert.isNull(read(text)?.problem, text)
    for (const text of verdicts.refused) {
      const facts = read(text)
      assert.isTrue(facts === null || facts.problem !== null, text)
    }
  })

  it("is refused with the position of the problem", () => {
    const bpe = { type: "BPE", vocab: { a: 0, b: 1, ab: 2 }, merges: [["a", "b"]] }
    const within = (step: object) => ({ type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits: true }, step] })
    for (const [value, words] of [
      [{ model: { ...bpe, merges: undefined } }, "no model.merges, which a model of the type BPE needs"],
      [{ model: { ...bpe, merges: 5 } }, "a model.merges that is not a list"],
      [
        { model: { ...bpe, merges: [["a", "b"], 5] } },
        "a model.merges[1] that is not a pair of tokens, or whose form (text or list) differs from that of earlier entries"
      ],
      [{ model: { ...bpe, merges: [["a", "c"]] } }, 'model.merges that use or produce "c", which is not in its vocabulary'],
      [{ model: { merges: ["b a"], type: "BPE", vocab: bpe.vocab } }, "model.merges that use or produce a token that is not in its vocabulary"],
      [{ model: { ...bpe, vocab: [["a", 0]] } }, "a model.vocab that is not an object, which the type BPE requires"],
      [{ model: { ...bpe, vocab: { a: "0" } } }, 'an entry "a" in model.vocab whose value is not a token id'],
      [{ model: { type: "Unigram", vocab: { a: 0 } } }, "a model.vocab that is not a list, which the type Unigram requires"],
      [{ model: { type: "Unigram", vocab: [["a", 0], ["b"]] } }, "no piece with its score in model.vocab[1]"],
      [{ model: { type: "Unigram", vocab: [["a", 0]], unk_id: 1 } }, "the model.unk_id 1, but only 1 pieces"],
      [{ model: { type: "WordLevel", vocab: {} } }, "a model of the type WordLevel with an invalid or missing unk_token"],
      [
        { model: { type: "WordPiece", unk_token: "u", continuing_subword_prefix: 5, vocab: {} } },
        "a model of the type WordPiece with an invalid or missing continuing_subword_prefix"
      ],
      [{ model: { type: "Odd", vocab: {} } }, "a model of the unknown type Odd"],
      [{ model: { ...bpe, type: 5 } }, "a model whose type is not a string"],
      [{ model: bpe, added_tokens: {} }, "added_tokens that are not a list"],
      [{ model: bpe, added_tokens: [{ id: 3, content: "x" }] }, "an invalid or missing single_word in added_tokens[0]"],
      [{ model: bpe, pre_tokenizer: { type: "Odd" } }, "a pre_tokenizer of the unknown type Odd"],
      [{ model: bpe, pre_tokenizer: within(within({ type: "Odd" })) }, "a pre_tokenizer.pretokenizers[1].pretokenizers[1] of the unknown type Odd"],
      [
        { model: bpe, pre_tokenizer: within({ type: "Split", behavior: "Isolated" }) },
        "a pre_tokenizer.pretokenizers[1] of the type Split with an invalid or missing pattern"
      ],
      [{ model: bpe, normalizer: "NFC" }, "a normalizer that is not an object"],
      [{ model: bpe, version: "2.0" }, "a wrong version"],
      [{ model: bpe, vocabulary: 1 }, "an unknown member vocabulary"]
    ] as const)
      assert.strictEqual(read(value)?.problem, words)
    for (const name of ["constructor", "__proto__", "toString"])
      assert.isNull(read(`{"model":{"${name}":{"type":"x"},"vocab":{"${name}":3},"merges":[]}}`)?.problem)
  })

  it("takes no more time with nested steps, and is left to the engine with tens of thousands of them", () => {
    const deep = (depth: number): object => (depth === 0 ? { type: "Odd" } : { type: "Sequence", normalizers: [deep(depth - 1), deep(0)] })
    assert.match(read({ model, normalizer: deep(20) })?.problem ?? "", /Odd$/)
    assert.isNull(read({ model, normalizer: { type: "Sequence", normalizers: Array.from({ length: 30_000 }, () => ({ type: "Odd" })) } }, 4096)?.problem)
  })

  it("is invalid without a model, and is refused if it is not JSON", () => {
    for (const none of ["{}", '{"model":5}', '{"model":[]}', "[]", "5"]) assert.isNull(read(none), none)
    for (const broken of ["", "{not json", '{"model":{}', '{"model":{}}}']) assert.throws(() => read(broken), Unreadable, undefined, broken)
  })
})
