import { type RepositoryFacts, type RepositoryFile, readTemplate } from "@seatrial/domain"
import { readOwnTemplate } from "./OwnTemplate.ts"
import { readTokenizer } from "./OwnTokenizer.ts"
import type { PinnedRepository } from "./SuiteSubject.ts"

/** What the engine's answers are held against, from a commit's facts and the texts of its small files. `files`: those of the commit, of an adapter its base's. */
export const readRepository = ({
  commit,
  facts,
  files,
  texts
}: {
  readonly facts: RepositoryFacts
  readonly files: ReadonlyArray<RepositoryFile>
  readonly commit: string
  readonly texts: ReadonlyMap<string, string>
}): PinnedRepository => ({
  commit,
  config: facts.config,
  weights: files.filter(({ path }) => path.endsWith(".safetensors")),
  weightsBytes: facts.weights_bytes,
  parameters: facts.parameters,
  // The tokenizer's is read once, and may be tens of megabytes.
  small: new Map([...texts].filter(([path]) => path !== "tokenizer.json")),
  // Of these the engine's own tokenizer may be another than the file describes.
  tokenizer: files.some(({ path }) => path === "tekken.json") ? null : readTokenizer(texts),
  template: readOwnTemplate(facts.chat_template, texts),
  thinking: { thinks: readTemplate(facts.chat_template).reasoningFormat !== null, toggle: readTemplate(facts.chat_template).thinkingToggle }
})
