const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

/** A split before and after each character of Unicode's category N, or each run of them. */
const splitOf = (individual: boolean) => ({ type: "Split", pattern: { Regex: individual ? "\\p{N}" : "\\p{N}+" }, behavior: "Isolated", invert: false })

const exact = (part: unknown): unknown => {
  if (!isObject(part)) return part
  if (part.type === "Digits") return splitOf(part.individual_digits === true)
  return Array.isArray(part.pretokenizers) ? { ...part, pretokenizers: part.pretokenizers.map(exact) } : part
}

/**
 * The fields of a `tokenizer.json`, with an equal `Split` in place of each pre-tokenizer `Digits`. Engines read the
 * file with a library for which every numeric character is a digit (`½`, `²`, `٣`). For `@huggingface/tokenizers` only
 * 0 to 9 are digits. Without imports, because a confined process loads this file.
 */
export const withNumericSplits = (file: object): object => ("pre_tokenizer" in file ? { ...file, pre_tokenizer: exact(file.pre_tokenizer) } : file)
