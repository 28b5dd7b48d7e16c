import * as Predicate from "effect/Predicate"

/**
 * A pre-tokenizer in which every numeric character is a digit, as in the library of vLLM and SGLang.
 * `@huggingface/tokenizers` takes only 0 to 9 for digits, so `Digits` becomes an equal `Split`.
 */
export const withNumericSplits = (part: unknown): unknown => {
  if (!Predicate.isObject(part)) return part
  if (part.type === "Digits") {
    const Regex = part.individual_digits === true ? "\\p{N}" : "\\p{N}+"
    return { type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false }
  }
  return Array.isArray(part.pretokenizers) ? { ...part, pretokenizers: part.pretokenizers.map(withNumericSplits) } : part
}
