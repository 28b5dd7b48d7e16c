import { assert, describe, it } from "@effect/vitest"
import { readTokenizer } from "../../src/suite/OwnTokenizer.ts"

const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false }

/** A tokenizer for the bytes of `½` and `²` that joins the end of the first and the begin of the second, unless they are words of their own. */
const tokenizerWith = (preTokenizer: object) =>
  readTokenizer(
    Buffer.from(
      JSON.stringify({
        version: "1.0",
        added_tokens: [],
        normalizer: null,
        pre_tokenizer: { type: "Sequence", pretokenizers: [preTokenizer, byteLevel] },
        post_processor: null,
        decoder: byteLevel,
        model: { type: "BPE", vocab: { Â: 0, "½": 1, "²": 2, "½Â": 3, "1": 4, "11": 5 }, merges: ["½ Â", "1 1"] }
      })
    ),
    "{}"
  )

// What the tokenizers library 0.23 gives for the same file.
describe("a tokenizer that splits digits", () => {
  for (const [text, separate, joined] of [
    ["½²", [0, 1, 0, 2], [0, 3, 2]],
    ["11", [4, 4], [5]]
  ] as const) {
    it(`takes each numeric character of ${text} for a digit, as engines do`, () => {
      assert.deepStrictEqual(tokenizerWith({ type: "Digits", individual_digits: true })?.encode(text, false), separate)
    })
    it(`keeps ${text} together if runs of digits are words`, () => {
      assert.deepStrictEqual(tokenizerWith({ type: "Digits", individual_digits: false })?.encode(text, false), joined)
    })
  }
})
