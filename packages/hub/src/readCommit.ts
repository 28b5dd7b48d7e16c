import { type RepositoryFacts, type RepositoryFile, refusesSampling, samplingDefaults } from "@seatrial/domain"
import { Effect, Predicate, Result } from "effect"
import { BaseModules } from "./BaseModules.ts"
import { parseJsonObject } from "./boundedJson.ts"
import { collect, verified } from "./contentHash.ts"
import { draftHead } from "./draftHead.ts"
import { Unreadable, UnsupportedArchitecture } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { asksForCode, chatTemplateOf, parseModelConfig, toolTemplateOf, writtenTemplate } from "./modelConfig.ts"
import { countParameters, dominantType } from "./parameters.ts"
import { parallelReads, readWeights } from "./readWeights.ts"
import type { Resolved } from "./resolve.ts"
import type { Sink } from "./safetensors.ts"
import { remoteCodeRequired, unreadProcessorCode } from "./screening.ts"
import { chooseWeights, indexPattern, isServingFile, otherFormats, tooLargeFiles, weightsPattern } from "./servingFiles.ts"
import { smallFilesAgree } from "./smallFilesAgree.ts"
import { scanTokenizer } from "./tokenizerFacts.ts"
import { maxIndexBytes, maxShards, scanIndex } from "./weightIndex.ts"
import { weightParts, withTensors } from "./weightParts.ts"
import { weightsAgree } from "./weightsAgree.ts"

/** Maximum size of a configuration file in bytes. */
const maxConfigBytes = 4 * 1024 * 1024
/** Maximum length of a chat template in bytes. */
export const maxTemplateBytes = 1024 * 1024
/**
 * Maximum length in bytes of a chat template that is not in a file of its own and so is passed to the engine as an
 * argument: Linux limits an argument to 128 KiB.
 */
const maxArgumentTemplate = 120_000
/** Maximum number of weight files without an index. A preview reads the headers of all of them. */
const maxWithoutIndex = 4
/**
 * Maximum size in bytes of a `tokenizer.json` that is validated. Real files have up to 35 MB, and a preview has
 * seconds. Screening has the same limit, so it refuses nothing more.
 */
const maxTokenizerBytes = 8 * 1024 * 1024
/** Maximum number of requests of a preview to the hub. */
export const previewRequests = 12

/** How much is read. `few`: a fixed number of requests for any number of weight files. `all`: every header. */
export type Depth = "few" | "all"

const hasTokenizer = (root: ReadonlyMap<string, RepositoryFile>) =>
  ["tokenizer.json", "tokenizer.model"].some((path) => root.has(path)) || (root.has("vocab.json") && root.has("merges.txt"))

/** Refuses a chat template that is not in a file of its own and is too long for an argument of the engine. */
export const checkArgumentTemplate = (template: string): Result.Result<void, Unreadable> => {
  const bytes = Buffer.byteLength(template)
  if (bytes <= maxArgumentTemplate) return Result.succeed(undefined)
  return Result.fail(
    new Unreadable({
      reason: `The chat template has ${bytes} bytes. Without a chat_template.jinja it is passed to the engine as an argument, which is limited to ${maxArgumentTemplate} bytes.`
    })
  )
}

/** Reads a complete small file of the commit into a sink and verifies it. */
export const readFile = <A>(
  connection: HubConnection,
  { commit, repo }: Pick<Resolved, "commit" | "repo">,
  file: RepositoryFile,
  limit: number,
  start: () => Sink<A>
) =>
  Effect.gen(function* () {
    if (file.size > limit) return yield* new Unreadable({ reason: `${file.path} is larger than ${limit} bytes.` })
    if (file.size === 0) return yield* new Unreadable({ reason: `${file.path} is empty.` })
    return yield* connection.readInto(connection.fileUrl(repo, commit, file.path), 0, file.size - 1, () => verified(file, start()))
  })

/** An object in a file of the root; empty if the repository has no such file. */
export const readJson = Effect.fnUntraced(function* (
  connection: HubConnection,
  resolved: Resolved,
  root: ReadonlyMap<string, RepositoryFile>,
  path: string
): Effect.fn.Return<Readonly<Record<PropertyKey, unknown>>, Effect.Error<ReturnType<typeof readFile>>> {
  const file = root.get(path)
  if (file === undefined) return {}
  const bytes = yield* readFile(connection, resolved, file, maxConfigBytes, () => collect(file.size))
  return yield* Effect.fromResult(parseJsonObject(bytes, path))
})

/** The quantization from the tool's own file, in the form in which newer versions write it into `config.json`. */
const withQuantization = (config: Readonly<Record<PropertyKey, unknown>>, own: Readonly<Record<PropertyKey, unknown>>) =>
  Predicate.isObject(own.quantization) ? { ...config, quantization_config: { quant_method: "modelopt", ...own.quantization } } : config

/**
 * The facts of a commit with a known root: the small files and the headers of its weights. With `few`, only as many
 * headers as the requests allow; see `readWeights`. `perFile`: requests per small file, if known.
 */
export const readCommit = Effect.fnUntraced(function* (
  connection: HubConnection,
  resolved: Resolved,
  root: ReadonlyMap<string, RepositoryFile>,
  { depth, perFile, ref }: { readonly ref: string; readonly depth: Depth; readonly perFile: number }
) {
  const { commit, repo } = resolved
  const json = (path: string) => readJson(connection, resolved, root, path)
  const weights = chooseWeights(root)
  const lacksWeights = weights.index === null && weights.single.length === 0
  // Draft heads come without a tokenizer, and many of them pickled. In that case the missing files are not the real
  // problem.
  if (root.has("config.json") && (lacksWeights || !hasTokenizer(root))) {
    const what = draftHead(yield* json("config.json"))
    if (what !== null) return yield* new UnsupportedArchitecture({ reason: `${repo} is ${what}.` })
  }
  if (lacksWeights) {
    return yield* new Unreadable({ reason: `The repository has no safetensors weights that are served: it has ${otherFormats([...root.keys()])}.` })
  }
  if (weights.index === null && weights.single.length > maxWithoutIndex) {
    return yield* new Unreadable({ reason: `The repository has ${weights.single.length} weight files and no index that says which tensors they hold.` })
  }
  if (!root.has("config.json")) return yield* new Unreadable({ reason: "The repository has no config.json." })
  if (!hasTokenizer(root)) return yield* new Unreadable({ reason: "The repository has no tokenizer." })

  const tooLarge = tooLargeFiles([...root.values()].filter(({ path }) => isServingFile(path)))
  if (tooLarge !== null) return yield* new Unreadable({ reason: tooLarge })

  const listed = new Set([...root.keys()].filter((path) => weightsPattern.test(path)))
  const { index: indexFile } = weights
  const template = root.get("chat_template.jinja")
  const before = connection.sent()
  // After an adapter's own files, no request may be left for a file that the template makes nearly redundant.
  const wanted = 2 + (template === undefined ? 0 : 1) + (indexFile === null ? 0 : 1)
  const spare = depth === "few" && template !== undefined && before + wanted * perFile + 1 > previewRequests
  const small = yield* Effect.all(
    {
      config: json("config.json"),
      tokenizer: spare ? Effect.succeed({}) : json("tokenizer_config.json"),
      templateJson: template === undefined ? json("chat_template.json") : Effect.succeed({}),
      template: template === undefined ? Effect.succeed(null) : readFile(connection, resolved, template, maxTemplateBytes, () => collect(template.size)),
      index: indexFile === null ? Effect.succeed(null) : readFile(connection, resolved, indexFile, maxIndexBytes, () => scanIndex(indexFile.path, listed))
    },
    { concurrency: parallelReads }
  )
  const files = ["config.json", spare ? "" : "tokenizer_config.json", template === undefined ? "chat_template.json" : template.path, indexFile?.path ?? ""]
  const requestedFiles = files.filter((path) => root.has(path)).length
  // The hub may redirect each file to another address. Every file then takes two requests.
  const each = Math.max(1, Math.ceil((connection.sent() - before) / Math.max(1, requestedFiles)))
  const left = () => (depth === "all" ? Number.POSITIVE_INFINITY : previewRequests - connection.sent())

  const quantization = small.config.quantization_config === undefined && root.has("hf_quant_config.json") ? ["hf_quant_config.json"] : []
  const optional = ["preprocessor_config.json", "processor_config.json", "generation_config.json"].filter((path) => root.has(path))
  const further = [...quantization, ...optional.slice(0, Math.max(0, Math.floor(left() / each) - Math.max(1, weights.single.length) - quantization.length))]
  // A tokenizer is not a fact, but without a readable one the engine fails to start. It is validated if every header is
  // read anyway.
  const tokenizer = root.get("tokenizer.json")
  const headers = small.index === null ? weights.single.length : small.index.files.size
  const readsTokenizer = tokenizer !== undefined && tokenizer.size <= maxTokenizerBytes && left() >= each * (further.length + 1 + headers * 2)
  const [more, tokenizerRead] = yield* Effect.all(
    [
      Effect.forEach(further, (path) => Effect.map(json(path), (value) => [path, value] as const), { concurrency: parallelReads }),
      readsTokenizer ? readFile(connection, resolved, tokenizer, maxTokenizerBytes, () => scanTokenizer("tokenizer.json")) : Effect.succeed(undefined)
    ],
    { concurrency: 2 }
  )
  if (tokenizerRead === null) return yield* new Unreadable({ reason: "tokenizer.json is not a tokenizer: it is not valid JSON, or has no model." })
  const what = draftHead(small.config)
  if (what !== null) return yield* new UnsupportedArchitecture({ reason: `${repo} is ${what}.` })
  for (const [file, value] of [["config.json", small.config] as const, ["tokenizer_config.json", small.tokenizer] as const, ...more])
    if (asksForCode(value)) return yield* remoteCodeRequired(file, commit)
  // A configuration that was not read may ask for the repository's Python code. If such code exists, it is assumed to.
  const unread = optional.filter((path) => path.includes("processor") && !further.includes(path))
  const python = [...root.keys()].find((path) => /(?:process|feature_extract)[A-Za-z0-9_]*\.py$/.test(path))
  if (python !== undefined && unread[0] !== undefined) return yield* unreadProcessorCode(python, unread[0], commit)
  const extra = new Map(more)
  const generation = extra.get("generation_config.json")
  const config = withQuantization(small.config, extra.get("hf_quant_config.json") ?? {})

  const { index } = small
  const shards = index === null ? weights.single : [...root.values()].filter(({ path }) => index.files.has(path))
  if (shards.length > maxShards) return yield* new Unreadable({ reason: `The repository has more than ${maxShards} weight files.` })
  const read = yield* readWeights({
    connection,
    urlOf: ({ path }) => connection.fileUrl(repo, commit, path),
    files: shards,
    index,
    left
  })

  // Engines read only a processor from there, and a tokenizer alone has none.
  const processed = root.has("preprocessor_config.json") || root.has("processor_config.json") || Predicate.hasProperty(small.tokenizer, "processor_class")
  const modelConfig = withTensors(yield* Effect.fromResult(parseModelConfig(config, dominantType(read.groups))), read.groups)
  yield* Effect.fromResult(weightsAgree(modelConfig, config, read.groups, read.fromHeaders))
  const smallFiles = { config, generation: generation ?? {}, tokenizerConfig: small.tokenizer, tokenizer: tokenizerRead ?? null }
  // Without a tokenizer.json, the end token may be in a form that is not read here.
  const endsRead = tokenizer !== undefined && !spare && (generation !== undefined || !root.has("generation_config.json"))
  yield* Effect.fromResult(smallFilesAgree(modelConfig.vocab_size, smallFiles, endsRead))
  const parameters = yield* Effect.fromResult(countParameters(read.groups, config))
  const loaded = new Set(shards.map(({ path }) => path))
  const chat_template =
    small.template === null
      ? ((processed ? chatTemplateOf(small.templateJson) : null) ?? chatTemplateOf(small.tokenizer))
      : writtenTemplate(new TextDecoder().decode(small.template))
  // A separate template file replaces all other templates.
  const otherTemplate = small.template === null && chat_template !== null && toolTemplateOf(small.tokenizer) !== chat_template
  if (otherTemplate) yield* Effect.fromResult(checkArgumentTemplate(chat_template))
  const facts: RepositoryFacts = {
    repo,
    ref,
    commit,
    license: resolved.license.name,
    gated: resolved.gated,
    files: [...root.values()]
      .filter(({ path }) => (weightsPattern.test(path) ? loaded.has(path) : indexPattern.test(path) ? path === indexFile?.path : isServingFile(path)))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    config: modelConfig,
    weights_bytes: read.bytes,
    weight_parts: weightParts(read.groups, modelConfig),
    parameters,
    chat_template,
    ...(otherTemplate ? { other_template: true } : {}),
    ...(generation === undefined ? {} : { sampling: samplingDefaults(generation) }),
    ...(refusesSampling(generation ?? {}) ? { refused_sampling: true } : {})
  }
  return { facts, whole: read.isComplete && !spare, modules: new BaseModules(read.groups) }
})
