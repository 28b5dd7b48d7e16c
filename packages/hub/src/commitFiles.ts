import type { RepositoryFile } from "@seatrial/domain"
import { Effect } from "effect"
import type { ChosenWeights } from "./commitLayout.ts"
import { collect } from "./contentHash.ts"
import { HubRefusal, Unreadable } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { asksForCode } from "./modelConfig.ts"
import { type Depth, maxTemplateBytes, previewRequests, readFile, readJson } from "./readFile.ts"
import { parallelReads } from "./readWeights.ts"
import { RefusalReason } from "./refusals.ts"
import type { Resolved } from "./resolve.ts"
import { weightsPattern } from "./servingFiles.ts"
import { scanTokenizer } from "./tokenizerFacts.ts"
import { maxIndexBytes, scanIndex } from "./weightIndex.ts"

/**
 * Maximum size in bytes of a `tokenizer.json` that is validated. Real files have up to 35 MB, and a preview has
 * seconds. Screening has the same limit, so it refuses nothing more.
 */
const maxTokenizerBytes = 8 * 1024 * 1024

/** A commit whose files are read. */
export interface CommitSource {
  readonly connection: HubConnection
  readonly resolved: Resolved
  readonly root: ReadonlyMap<string, RepositoryFile>
  readonly depth: Depth
  /** Number of requests that a small file takes, or 1 if it is not known. */
  readonly perFile: number
  readonly weights: ChosenWeights
}

/** The number of requests that may still be sent. */
export const requestsLeft = ({ connection, depth }: CommitSource): number => (depth === "all" ? Number.POSITIVE_INFINITY : previewRequests - connection.sent())

/**
 * Whether `tokenizer_config.json` is not read. After an adapter's own files, no request may be left for a file that the
 * template makes nearly redundant.
 */
const skipsTokenizerConfig = ({ connection, depth, perFile, weights }: CommitSource, template: RepositoryFile | undefined): boolean => {
  if (depth !== "few" || template === undefined) return false
  const requiredFiles = 3 + (weights.index === null ? 0 : 1)
  return connection.sent() + requiredFiles * perFile + 1 > previewRequests
}

/** Reads the files that every model needs, and counts the requests that each takes. */
export const readRequired = Effect.fnUntraced(function* (source: CommitSource) {
  const { connection, resolved, root, weights } = source
  const json = (path: string) => readJson(connection, resolved, root, path)
  const listed = new Set([...root.keys()].filter((path) => weightsPattern.test(path)))
  const { index: indexFile } = weights
  const template = root.get("chat_template.jinja")
  const before = connection.sent()
  const skipsTokenizer = skipsTokenizerConfig(source, template)
  const contents = yield* Effect.all(
    {
      config: json("config.json"),
      tokenizer: skipsTokenizer ? Effect.succeed({}) : json("tokenizer_config.json"),
      templateJson: template === undefined ? json("chat_template.json") : Effect.succeed({}),
      template: template === undefined ? Effect.succeed(null) : readFile(connection, resolved, template, maxTemplateBytes, () => collect(template.size)),
      index: indexFile === null ? Effect.succeed(null) : readFile(connection, resolved, indexFile, maxIndexBytes, () => scanIndex(indexFile.path, listed))
    },
    { concurrency: parallelReads }
  )
  const files = ["config.json", skipsTokenizer ? "" : "tokenizer_config.json", template?.path ?? "chat_template.json", indexFile?.path ?? ""]
  const requestedFiles = files.filter((path) => root.has(path)).length
  // The hub may redirect each file to another address. Every file then takes two requests.
  const perFile = Math.max(1, Math.ceil((connection.sent() - before) / Math.max(1, requestedFiles)))
  return { ...contents, skipsTokenizer, perFile }
})

export type RequiredFiles = Effect.Success<ReturnType<typeof readRequired>>

const optionalFiles = ["preprocessor_config.json", "processor_config.json", "generation_config.json"]

/** The optional files for which requests are left, after those for the headers of the weights. */
const affordableFiles = (source: CommitSource, { config, perFile }: RequiredFiles): ReadonlyArray<string> => {
  const { root, weights } = source
  const quantization = config.quantization_config === undefined && root.has("hf_quant_config.json") ? ["hf_quant_config.json"] : []
  const headers = Math.max(1, weights.single.length)
  const count = Math.max(0, Math.floor(requestsLeft(source) / perFile) - headers - quantization.length)
  return [...quantization, ...optionalFiles.filter((path) => root.has(path)).slice(0, count)]
}

/**
 * The `tokenizer.json` to validate. A tokenizer is not a fact, but without a readable one the engine fails to start. It
 * is validated if every header is read anyway.
 */
const tokenizerToRead = (source: CommitSource, { index, perFile }: RequiredFiles, furtherFiles: number): RepositoryFile | undefined => {
  const tokenizer = source.root.get("tokenizer.json")
  const headers = index === null ? source.weights.single.length : index.files.size
  if (tokenizer === undefined || tokenizer.size > maxTokenizerBytes) return undefined
  return requestsLeft(source) >= perFile * (furtherFiles + 1 + headers * 2) ? tokenizer : undefined
}

/** Reads the files that a model may lack, by name, and the tokenizer; null if it is not read. */
export const readOptional = Effect.fnUntraced(function* (source: CommitSource, required: RequiredFiles) {
  const { connection, resolved, root } = source
  const further = affordableFiles(source, required)
  const file = tokenizerToRead(source, required, further.length)
  const [entries, tokenizer] = yield* Effect.all(
    [
      Effect.forEach(further, (path) => Effect.map(readJson(connection, resolved, root, path), (value) => [path, value] as const), {
        concurrency: parallelReads
      }),
      file === undefined ? Effect.succeed(undefined) : readFile(connection, resolved, file, maxTokenizerBytes, () => scanTokenizer("tokenizer.json"))
    ],
    { concurrency: 2 }
  )
  if (tokenizer === null) return yield* new Unreadable({ reason: "tokenizer.json is not a tokenizer: it is not valid JSON, or has no model." })
  return { contents: new Map(entries), tokenizer: tokenizer ?? null }
})

export type OptionalFiles = Effect.Success<ReturnType<typeof readOptional>>

/** Refuses a configuration that asks for Python code of the repository. */
const requestedCode = (required: RequiredFiles, { contents }: OptionalFiles): RefusalReason | null => {
  const files = [["config.json", required.config] as const, ["tokenizer_config.json", required.tokenizer] as const, ...contents]
  const asking = files.find(([, value]) => asksForCode(value))
  return asking === undefined ? null : RefusalReason.RemoteCode({ file: asking[0] })
}

/**
 * A configuration that was not read may ask for the repository's Python code. If such code exists, it is assumed to.
 */
const assumedCode = ({ root }: CommitSource, { contents }: OptionalFiles): RefusalReason | null => {
  const unread = optionalFiles.find((path) => root.has(path) && path.includes("processor") && !contents.has(path))
  const python = [...root.keys()].find((path) => /(?:process|feature_extract)[A-Za-z0-9_]*\.py$/.test(path))
  return python === undefined || unread === undefined ? null : RefusalReason.UnreadProcessor({ file: python, unread })
}

/** Refuses a repository whose Python code would have to run; null if there is none. */
export const codeRefusal = (source: CommitSource, required: RequiredFiles, optional: OptionalFiles): HubRefusal | null => {
  const reason = requestedCode(required, optional) ?? assumedCode(source, optional)
  return reason === null ? null : new HubRefusal({ reason, commit: source.resolved.commit })
}
