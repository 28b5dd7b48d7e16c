import { assert, it } from "@effect/vitest"
import { withNumericSplits } from "../src/numericSplits.ts"

it("a pre-tokenizer of digits splits at every numeric character, also within a sequence, and others stay as they are", () => {
  const byteLevel = { type: "ByteLevel", add_prefix_space: false }
  const split = (Regex: string) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false })
  const sequence = { type: "Sequence", pretokenizers: [{ type: "Digits", individual_digits: true }, byteLevel] }
  assert.deepStrictEqual(withNumericSplits(sequence), { type: "Sequence", pretokenizers: [split("\\p{N}"), byteLevel] })
  assert.deepStrictEqual(withNumericSplits({ type: "Digits", individual_digits: false }), split("\\p{N}+"))
  for (const other of [byteLevel, null, undefined]) assert.deepStrictEqual(withNumericSplits(other), other)
})
