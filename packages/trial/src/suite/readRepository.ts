import { jsonOfPython, optionalNullable, type RepositoryFacts, type RepositoryFile, readTemplate } from "@seatrial/domain"
import { Effect, Option, Schema, type Scope } from "effect"
import type { TemplateSource } from "./OwnTemplate.ts"
import { readPinned } from "./readPinned.ts"
import type { PinnedRepository } from "./SuiteSubject.ts"

/**
 * Whether a commit with these files has a readable tokenizer. With a `tekken.json` the engine may use another tokenizer
 * than the one in `tokenizer.json`.
 */
export const readsTokenizer = (files: ReadonlyArray<Pick<RepositoryFile, "path">>): boolean =>
  files.some(({ path }) => path === "tokenizer.json") && !files.some(({ path }) => path === "tekken.json")

/** Identifies a commit. `files`: the files of the commit; for an adapter, the files of its base. */
interface PinnedCommit {
  readonly facts: RepositoryFacts
  readonly files: ReadonlyArray<RepositoryFile>
  readonly commit: string
}

/** The facts about a commit, without reading any of its files. */
export const unreadRepository = ({ commit, facts, files }: PinnedCommit): PinnedRepository => {
  const { reasoningFormat, thinkingToggle } = readTemplate(facts.chat_template)
  return {
    commit,
    config: facts.config,
    weights: files.filter(({ path }) => path.endsWith(".safetensors")),
    weightsBytes: facts.weights_bytes,
    parameters: facts.parameters,
    small: new Map(),
    tokenizer: null,
    template: null,
    thinking: { thinks: reasoningFormat !== null, toggle: thinkingToggle }
  }
}

const Token = optionalNullable(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })]))
const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ bos_token: Token, eos_token: Token })))
const textOf = (token: typeof Token.Type | undefined) => (typeof token === "string" ? token : (token?.content ?? ""))

/** Templates that write the time produce another prompt a moment later. */
const tellsTime = /\bnow\s*\(/

/** Returns null if there is no template, or none whose prompts can be compared. */
const templateOf = (text: string | null, config: string): TemplateSource | null => {
  if (text === null || tellsTime.test(text)) return null
  const tokens = Option.getOrNull(decodeTokens(config))
  return { text, tokens: { bos_token: textOf(tokens?.bos_token), eos_token: textOf(tokens?.eos_token) } }
}

/**
 * Builds the data to compare the engine with, from the facts and the small files of a commit. Tokenizer and template
 * are available for the lifetime of the scope.
 */
export const readRepository = Effect.fnUntraced(function* (
  commit: PinnedCommit & { readonly small: ReadonlyMap<string, Uint8Array> }
): Effect.fn.Return<PinnedRepository, never, Scope.Scope> {
  // `tokenizer.json` may have tens of megabytes, so it is read only once.
  const small = new Map(
    [...commit.small].flatMap(([path, bytes]) =>
      path === "tokenizer.json"
        ? []
        : [[path, path.endsWith(".json") ? jsonOfPython(new TextDecoder().decode(bytes)) : new TextDecoder().decode(bytes)] as const]
    )
  )
  const config = small.get("tokenizer_config.json") ?? "{}"
  const file = readsTokenizer(commit.files) ? commit.small.get("tokenizer.json") : undefined
  const pinned = yield* readPinned({
    tokenizer: file === undefined ? null : { file, config },
    template: templateOf(commit.facts.chat_template, config)
  })
  return { ...unreadRepository(commit), small, ...pinned }
})
