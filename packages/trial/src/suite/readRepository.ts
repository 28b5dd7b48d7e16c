import { type RepositoryFacts, type RepositoryFile, readTemplate } from "@seatrial/domain"
import { readOwnTemplate } from "./OwnTemplate.ts"
import { readTokenizer } from "./OwnTokenizer.ts"
import type { PinnedRepository } from "./SuiteSubject.ts"

/** Whether a commit of those files has a tokenizer that we read. With a `tekken.json` the engine's own may be another than `tokenizer.json` describes. */
export const readsTokenizer = (files: ReadonlyArray<Pick<RepositoryFile, "path">>): boolean =>
  files.some(({ path }) => path === "tokenizer.json") && !files.some(({ path }) => path === "tekken.json")

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
  tokenizer: readsTokenizer(files) ? readTokenizer(texts) : null,
  template: readOwnTemplate(facts.chat_template, texts),
  thinking: { thinks: readTemplate(facts.chat_template).reasoningFormat !== null, toggle: readTemplate(facts.chat_template).thinkingToggle }
})
