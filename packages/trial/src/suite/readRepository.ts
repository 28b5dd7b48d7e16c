import { jsonOfPython, type RepositoryFacts, type RepositoryFile, readTemplate } from "@seatrial/domain"
import { Effect, Option, Schema, type Scope } from "effect"
import type { TemplateSource } from "./OwnTemplate.ts"
import { readPinned } from "./readPinned.ts"
import type { PinnedRepository } from "./SuiteSubject.ts"

/** Whether a commit of those files has a tokenizer that we read. With a `tekken.json` the engine's own may be another than `tokenizer.json` describes. */
export const readsTokenizer = (files: ReadonlyArray<Pick<RepositoryFile, "path">>): boolean =>
  files.some(({ path }) => path === "tokenizer.json") && !files.some(({ path }) => path === "tekken.json")

/** Which commit it is. `files`: those of the commit, of an adapter its base's. */
interface PinnedCommit {
  readonly facts: RepositoryFacts
  readonly files: ReadonlyArray<RepositoryFile>
  readonly commit: string
}

/** What is known of a commit from its facts, without any of its files. */
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

const Token = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })])))
const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ bos_token: Token, eos_token: Token })))
const textOf = (token: typeof Token.Type | undefined) => (typeof token === "string" ? token : (token?.content ?? ""))

/** Templates that write the time into the prompt give another one a moment later. */
const tellsTime = /\bnow\s*\(/

/** Null where there is no template, or one that we cannot hold an engine to. */
const templateOf = (text: string | null, config: string): TemplateSource | null => {
  if (text === null || tellsTime.test(text)) return null
  const tokens = Option.getOrNull(decodeTokens(config))
  return { text, tokens: { bos_token: textOf(tokens?.bos_token), eos_token: textOf(tokens?.eos_token) } }
}

/** What the engine's answers are held against, from a commit's facts and its small files; tokenizer and template are asked for as long as the scope. */
export const readRepository = Effect.fnUntraced(function* (
  commit: PinnedCommit & { readonly small: ReadonlyMap<string, Uint8Array> }
): Effect.fn.Return<PinnedRepository, never, Scope.Scope> {
  // The tokenizer's is read once, and may be tens of megabytes.
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
