import type { RepositoryFile } from "@seatrial/domain"
import { type chooseWeights, isServingFile, otherFormats, tooLargeFiles } from "./servingFiles.ts"

type Root = ReadonlyMap<string, RepositoryFile>
export type ChosenWeights = ReturnType<typeof chooseWeights>

/** Maximum number of weight files without an index. A preview reads the headers of all of them. */
const maxWithoutIndex = 4

const hasTokenizer = (root: ReadonlyMap<string, RepositoryFile>) =>
  ["tokenizer.json", "tokenizer.model"].some((path) => root.has(path)) || (root.has("vocab.json") && root.has("merges.txt"))

const lacksWeights = ({ index, single }: ChosenWeights) => index === null && single.length === 0

/**
 * Whether a configuration may belong to a draft head. Draft heads come without a tokenizer, and many of them pickled.
 * In that case the missing files are not the real problem.
 */
export const mayBeDraftHead = (root: Root, weights: ChosenWeights): boolean => root.has("config.json") && (lacksWeights(weights) || !hasTokenizer(root))

const missingWeights = (root: Root, weights: ChosenWeights): string | null =>
  lacksWeights(weights) ? `The repository has no safetensors weights that are served: it has ${otherFormats([...root.keys()])}.` : null

const missingIndex = ({ index, single }: ChosenWeights): string | null =>
  index === null && single.length > maxWithoutIndex ? `The repository has ${single.length} weight files and no index that says which tensors they hold.` : null

const missingFile = (root: Root): string | null => {
  if (!root.has("config.json")) return "The repository has no config.json."
  return hasTokenizer(root) ? null : "The repository has no tokenizer."
}

/** Why the files of a root cannot be served, as a sentence; null if they can. */
export const layoutProblem = (root: Root, weights: ChosenWeights): string | null =>
  missingWeights(root, weights) ?? missingIndex(weights) ?? missingFile(root) ?? tooLargeFiles([...root.values()].filter(({ path }) => isServingFile(path)))
