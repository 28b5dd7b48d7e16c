/** Tokenizer files in formats that the reference engine does not read. */
const otherForms = ["tokenizer.model", "vocab.json"]

/**
 * Why the reference engine cannot read the tokenizer of a repository with these files, as a sentence; null if it can,
 * or if no tokenizer is listed.
 */
export const referenceTokenizerIssue = (paths: ReadonlySet<string>): string | null => {
  const form = paths.has("tokenizer.json") ? undefined : otherForms.find((path) => paths.has(path))
  return form === undefined ? null : `reference-0.1.0 reads only tokenizer.json, and the repository has only ${form}.`
}

/** The same for an engine that reads every format: on simulated GPUs the reference engine runs in its place. */
export const standInTokenizerIssue = (paths: ReadonlySet<string>, simulated: boolean): string | null => (simulated ? referenceTokenizerIssue(paths) : null)
