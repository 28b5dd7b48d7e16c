import { Predicate, Result, Schema } from "effect"
import type { Json } from "./ConfigReader.ts"
import { Unreadable } from "./failures.ts"
import type { TokenizerFacts } from "./tokenizerFacts.ts"

const isIds = Schema.is(Schema.Union([Schema.Int, Schema.Array(Schema.Int)]))
const isNamed = Schema.is(Schema.Array(Schema.Struct({ name: Schema.String, template: Schema.String })))

/** The first end-of-turn id outside of the vocabulary, as a sentence; null if all are valid. */
const endProblem = (file: string, value: unknown, rows: number): string | null => {
  if (!Predicate.isNotNullish(value)) return null
  if (!isIds(value)) return `eos_token_id in ${file} must be a token's id or a list of such ids.`
  const outside = (typeof value === "number" ? [value] : value).find((id) => id < 0 || id >= rows)
  return outside === undefined ? null : `${file} gives the eos_token_id ${outside}, and the vocabulary has ${rows} tokens.`
}

/** A template, several named templates, or a dictionary of templates, which only some engines accept. */
const isTemplate = (value: unknown) => !Predicate.isNotNullish(value) || typeof value === "string" || isNamed(value) || Predicate.isObject(value)

/** Whether a tokenizer's configuration names the token that ends an answer. */
const namesEnd = (value: unknown): boolean => {
  const text = Predicate.hasProperty(value, "content") ? value.content : value
  return typeof text === "string" && text !== ""
}

const cacheImplementations = new Set([
  "static",
  "offloaded_static",
  "sliding_window",
  "hybrid",
  "hybrid_chunked",
  "offloaded_hybrid",
  "offloaded_hybrid_chunked",
  "dynamic",
  "offloaded",
  "quantized",
  "paged"
])

/**
 * The value of a `generation_config.json` that Transformers 5 rejects and that fails each engine's start
 * (`GenerationConfig.validate`), as a sentence; null if there is none.
 */
const generationProblem = ({ cache_implementation: cache = null, early_stopping: stopping = null, max_new_tokens: most = null }: Json): string | null => {
  const problem = (what: string) => `${what}; otherwise no engine starts.`
  if (most !== null && !(typeof most === "number" && most > 0)) return problem("max_new_tokens in generation_config.json must be a number above 0")
  if (![null, true, false, 0, 1, "never"].some((known) => known === stopping))
    return problem('early_stopping in generation_config.json must be true, false or "never"')
  if (cache !== null && !(typeof cache === "string" && cacheImplementations.has(cache)))
    return problem("cache_implementation in generation_config.json must be one that Transformers knows")
  return null
}

const isNoEnd = (value: unknown) => !Predicate.isNotNullish(value) || (Array.isArray(value) && value.length === 0)

/** The small files of a repository. */
interface SmallFiles {
  readonly config: Json
  readonly generation: Json
  readonly tokenizerConfig: Json
  readonly tokenizer: TokenizerFacts | null
}

/** The end of a turn that the configuration or its text model names. */
const configuredEnd = ({ config }: SmallFiles): unknown =>
  config.eos_token_id ?? (Predicate.isObject(config.text_config) ? config.text_config.eos_token_id : undefined)

const missingEnd = (files: SmallFiles): string | null =>
  isNoEnd(configuredEnd(files)) && isNoEnd(files.generation.eos_token_id) && !namesEnd(files.tokenizerConfig.eos_token)
    ? "No end-of-turn token is named: config.json and generation_config.json have no eos_token_id, and tokenizer_config.json no eos_token."
    : null

const templateProblem = ({ tokenizerConfig }: SmallFiles): string | null =>
  isTemplate(tokenizerConfig.chat_template) ? null : "chat_template in tokenizer_config.json must be a string or a list of named templates."

const tokenProblem = ({ tokenizer }: SmallFiles, rows: number): string | null =>
  tokenizer !== null && tokenizer.highest >= rows ? `tokenizer.json has a token of the id ${tokenizer.highest}, and the embedding has ${rows} rows.` : null

const missingAddedTokens = ({ tokenizer, tokenizerConfig }: SmallFiles): string | null =>
  tokenizer !== null && !tokenizer.listsAdded && !Predicate.hasProperty(tokenizerConfig, "added_tokens_decoder")
    ? "tokenizer.json has no added_tokens, which Transformers requires. Add an empty list with that name."
    : null

const tokenizerProblem = ({ tokenizer }: SmallFiles): string | null =>
  tokenizer !== null && tokenizer.problem !== null
    ? `tokenizer.json has ${tokenizer.problem}. No engine can read the file. Save the file again with the tokenizers library, or choose a commit whose tokenizer.json the library can read.`
    : null

/**
 * Compares the small files with the configuration. A contradiction would fail the run in the check suite or at the
 * engine's start. `rows`: size of the vocabulary. `isComplete`: whether all files that may name an end of turn were
 * read.
 */
export const smallFilesAgree = (rows: number, files: SmallFiles, isComplete = false): Result.Result<void, Unreadable> => {
  const problem =
    endProblem("config.json", configuredEnd(files), rows) ??
    endProblem("generation_config.json", files.generation.eos_token_id, rows) ??
    generationProblem(files.generation) ??
    (isComplete ? missingEnd(files) : null) ??
    templateProblem(files) ??
    tokenProblem(files, rows) ??
    (isComplete ? missingAddedTokens(files) : null) ??
    tokenizerProblem(files)
  return problem === null ? Result.succeed(undefined) : Result.fail(new Unreadable({ reason: problem }))
}
