import { type ModelConfig, type RepositoryFacts, type RepositoryFile, refusesSampling, samplingDefaults } from "@seatrial/domain"
import { Effect, Predicate, Result } from "effect"
import { BaseModules } from "./BaseModules.ts"
import type { Json } from "./ConfigReader.ts"
import { type CommitSource, codeRefusal, type OptionalFiles, type RequiredFiles, readOptional, readRequired, requestsLeft } from "./commitFiles.ts"
import { layoutProblem, mayBeDraftHead } from "./commitLayout.ts"
import { draftHead } from "./draftHead.ts"
import { Unreadable, UnsupportedArchitecture } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { chatTemplateOf, parseModelConfig, toolTemplateOf, writtenTemplate } from "./modelConfig.ts"
import { countParameters, dominantType } from "./parameters.ts"
import { checkArgumentTemplate, type Depth, readJson } from "./readFile.ts"
import { readWeights, type Weights } from "./readWeights.ts"
import type { Resolved } from "./resolve.ts"
import { chooseWeights, indexPattern, isServingFile, weightsPattern } from "./servingFiles.ts"
import { smallFilesAgree } from "./smallFilesAgree.ts"
import { maxShards } from "./weightIndex.ts"
import { weightParts, withTensors } from "./weightParts.ts"
import { weightsAgree } from "./weightsAgree.ts"

/** The quantization from the tool's own file, in the form in which newer versions write it into `config.json`. */
const withQuantization = (config: Readonly<Record<PropertyKey, unknown>>, own: Readonly<Record<PropertyKey, unknown>>) =>
  Predicate.isObject(own.quantization) ? { ...config, quantization_config: { quant_method: "modelopt", ...own.quantization } } : config

/** The contents of a commit, after all of its requests. */
interface CommitContents {
  readonly required: RequiredFiles
  readonly optional: OptionalFiles
  /** The configuration with the quantization. */
  readonly config: Json
  /** The files with weights that engines load. */
  readonly shards: ReadonlyArray<RepositoryFile>
  readonly weights: Weights
}

const draftHeadProblem = ({ repo }: Resolved, config: Json): UnsupportedArchitecture | null => {
  const kind = draftHead(config)
  return kind === null ? null : new UnsupportedArchitecture({ reason: `${repo} is ${kind}.` })
}

/** Refuses a root from which no model can be served, before any of its files is downloaded. */
const checkLayout = Effect.fnUntraced(function* ({ connection, resolved, root, weights }: CommitSource) {
  if (mayBeDraftHead(root, weights)) {
    const problem = draftHeadProblem(resolved, yield* readJson(connection, resolved, root, "config.json"))
    if (problem !== null) return yield* problem
  }
  const problem = layoutProblem(root, weights)
  if (problem !== null) return yield* new Unreadable({ reason: problem })
})

/** Reads the small files of a commit, then the headers of its weights. */
const readContents = Effect.fnUntraced(function* (source: CommitSource) {
  const { connection, resolved, root } = source
  const required = yield* readRequired(source)
  const optional = yield* readOptional(source, required)
  const refusal = draftHeadProblem(resolved, required.config) ?? codeRefusal(source, required, optional)
  if (refusal !== null) return yield* refusal
  const config = withQuantization(required.config, optional.contents.get("hf_quant_config.json") ?? {})
  const { index } = required
  const shards = index === null ? source.weights.single : [...root.values()].filter(({ path }) => index.files.has(path))
  if (shards.length > maxShards) return yield* new Unreadable({ reason: `The repository has more than ${maxShards} weight files.` })
  const weights = yield* readWeights({
    connection,
    urlOf: ({ path }) => connection.fileUrl(resolved.repo, resolved.commit, path),
    files: shards,
    index,
    left: () => requestsLeft(source)
  })
  return { required, optional, config, shards, weights }
})

/** Compares the files with each other, and returns the configuration and the parameters of the model. */
const checkContents = ({ root }: CommitSource, { config, optional, required, weights }: CommitContents) =>
  Result.gen(function* () {
    const modelConfig = withTensors(yield* parseModelConfig(config, dominantType(weights.groups)), weights.groups)
    yield* weightsAgree(modelConfig, config, weights.groups, weights.fromHeaders)
    const generation = optional.contents.get("generation_config.json")
    const smallFiles = { config, generation: generation ?? {}, tokenizerConfig: required.tokenizer, tokenizer: optional.tokenizer }
    // Without a tokenizer.json, the end token may be in a form that is not read here.
    const endsRead = root.has("tokenizer.json") && !required.skipsTokenizer && (generation !== undefined || !root.has("generation_config.json"))
    yield* smallFilesAgree(modelConfig.vocab_size, smallFiles, endsRead)
    return { modelConfig, parameters: yield* countParameters(weights.groups, config) }
  })

/** The chat template of the files, and whether it is passed to the engine as an argument. */
const chatTemplate = ({ root }: CommitSource, { template, templateJson, tokenizer }: RequiredFiles) => {
  // A separate template file replaces all other templates.
  if (template !== null) return { chat_template: writtenTemplate(new TextDecoder().decode(template)), isArgument: false }
  // Engines read only a processor from there, and a tokenizer alone has none.
  const hasProcessor = root.has("preprocessor_config.json") || root.has("processor_config.json") || Predicate.hasProperty(tokenizer, "processor_class")
  const chat_template = (hasProcessor ? chatTemplateOf(templateJson) : null) ?? chatTemplateOf(tokenizer)
  return { chat_template, isArgument: chat_template !== null && toolTemplateOf(tokenizer) !== chat_template }
}

const checkTemplate = ({ chat_template, isArgument }: ReturnType<typeof chatTemplate>): Result.Result<void, Unreadable> =>
  isArgument && chat_template !== null ? checkArgumentTemplate(chat_template) : Result.succeed(undefined)

/** The files that a run downloads: of weights and indexes only those that engines load. */
const filesToServe = ({ root, weights }: CommitSource, shards: ReadonlyArray<RepositoryFile>): ReadonlyArray<RepositoryFile> => {
  const loaded = new Set(shards.map(({ path }) => path))
  const isServed = ({ path }: RepositoryFile) => {
    if (weightsPattern.test(path)) return loaded.has(path)
    return indexPattern.test(path) ? path === weights.index?.path : isServingFile(path)
  }
  return [...root.values()].filter(isServed).sort((a, b) => (a.path < b.path ? -1 : 1))
}

const samplingFacts = (generation: Json | undefined): Pick<RepositoryFacts, "sampling" | "refused_sampling"> => ({
  ...(generation === undefined ? {} : { sampling: samplingDefaults(generation) }),
  ...(refusesSampling(generation ?? {}) ? { refused_sampling: true } : {})
})

const factsOf = (
  source: CommitSource,
  ref: string,
  { optional, shards, weights }: CommitContents,
  model: { readonly modelConfig: ModelConfig; readonly parameters: RepositoryFacts["parameters"] },
  { chat_template, isArgument }: ReturnType<typeof chatTemplate>
): RepositoryFacts => {
  const { commit, gated, license, repo } = source.resolved
  return {
    repo,
    ref,
    commit,
    license: license.name,
    gated,
    files: filesToServe(source, shards),
    config: model.modelConfig,
    weights_bytes: weights.bytes,
    weight_parts: weightParts(weights.groups, model.modelConfig),
    parameters: model.parameters,
    chat_template,
    ...(isArgument ? { other_template: true } : {}),
    ...samplingFacts(optional.contents.get("generation_config.json"))
  }
}

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
  const source: CommitSource = { connection, resolved, root, depth, perFile, weights: chooseWeights(root) }
  yield* checkLayout(source)
  const contents = yield* readContents(source)
  const model = yield* Effect.fromResult(checkContents(source, contents))
  const template = chatTemplate(source, contents.required)
  yield* Effect.fromResult(checkTemplate(template))
  const { weights } = contents
  return {
    facts: factsOf(source, ref, contents, model, template),
    isComplete: weights.isComplete && !contents.required.skipsTokenizer,
    modules: new BaseModules(weights.groups)
  }
})
