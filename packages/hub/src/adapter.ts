import type { AdapterFacts, RepositoryFacts, RepositoryFile } from "@seatrial/domain"
import { Effect, Result } from "effect"
import { type AdapterConfig, parseAdapterConfig } from "./adapterConfig.ts"
import { hashAdapter } from "./adapterHash.ts"
import { type AdapterTensor, adapterTensors, checkAdapter } from "./adapterTensors.ts"
import type { BaseModules } from "./BaseModules.ts"
import { parseJsonObject } from "./boundedJson.ts"
import { collect } from "./contentHash.ts"
import { Unreadable } from "./failures.ts"
import type { HubConnection } from "./HubConnection.ts"
import { chatTemplateOf, writtenTemplate } from "./modelConfig.ts"
import { checkArgumentTemplate, type Depth, maxTemplateBytes, previewRequests, readFile, readJson } from "./readFile.ts"
import type { Resolved } from "./resolve.ts"
import { headerLength, scanHeader } from "./safetensors.ts"
import { isRepoName } from "./screening.ts"

const weightsFile = "adapter_model.safetensors"
/** Maximum length of an adapter's header, which is kept in memory: ten times the largest real one. */
const maxHeaderBytes = 4 * 2 ** 20
const firstRead = 128 * 1024
/** Maximum size of an adapter: several times the size of the highest ranks. */
const maxBytes = 32 * 2 ** 30

/** Whether a repository holds an adapter in the layout of PEFT and no complete model. */
export const isAdapter = (root: ReadonlyMap<string, RepositoryFile>): boolean => root.has("adapter_config.json") && !root.has("config.json")

/** The facts in an adapter's own files, without its base. */
export interface OwnAdapter {
  readonly config: AdapterConfig
  /** A repository of the hub. */
  readonly base: string
  readonly weights: RepositoryFile
  readonly tensors: ReadonlyArray<AdapterTensor>
  /** Offset of the tensors in the file. */
  readonly dataStart: number
}

const isOnHub = (name: string | null): boolean => isRepoName(name)

const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

/** Describes an adapter for a message. */
export const describeAdapter = (repo: string, { base, config, weights }: OwnAdapter): string =>
  `${repo} is a LoRA adapter of rank ${config.rank} (${mib(weights.size)}) for ${base}`

const readTensors = Effect.fnUntraced(function* (connection: HubConnection, { commit, repo }: Resolved, file: RepositoryFile) {
  const url = connection.fileUrl(repo, commit, file.path)
  const beginning = Math.min(file.size, firstRead)
  const first = file.size === 0 ? new Uint8Array() : yield* connection.readInto(url, 0, beginning - 1, () => collect(beginning))
  const length = yield* Effect.fromResult(headerLength(first, file.size, file.path))
  if (length > maxHeaderBytes) return yield* new Unreadable({ reason: `${file.path} has a header of more than ${maxHeaderBytes} bytes.` })
  const rest = 8 + length - first.length
  const more = rest > 0 ? yield* connection.readInto(url, first.length, 7 + length, () => collect(rest)) : new Uint8Array()
  const header = Buffer.concat([first.subarray(8, Math.min(first.length, 8 + length)), more])
  yield* Effect.fromResult(
    Result.try({
      try: () => {
        const sink = scanHeader(file.size - 8 - length, file.path)
        sink.push(header)
        return sink.end()
      },
      catch: (error) => (error instanceof Unreadable ? error : new Unreadable({ reason: `${file.path} has a header that cannot be read.` }))
    })
  )
  const tensors = yield* Effect.fromResult(Result.flatMap(parseJsonObject(header, `The header of ${file.path}`), adapterTensors))
  return { tensors, dataStart: 8 + length }
})

/**
 * Reads the facts in an adapter's repository. Fails if no engine would apply the adapter, or if it does not name a base
 * on the hub.
 */
export const readAdapter = Effect.fnUntraced(function* (connection: HubConnection, resolved: Resolved, root: ReadonlyMap<string, RepositoryFile>) {
  const { repo } = resolved
  const json = yield* readJson(connection, resolved, root, "adapter_config.json")
  const config = yield* Effect.fromResult(parseAdapterConfig(json)).pipe(
    Effect.mapError(({ reason }) => new Unreadable({ reason: `${repo} cannot be served. ${reason}` }))
  )
  const weights = root.get(weightsFile)
  if (weights === undefined) {
    const pickled = root.has("adapter_model.bin") ? " It has only pickled weights (adapter_model.bin), which can run code when they are loaded." : ""
    return yield* new Unreadable({ reason: `The adapter ${repo} has no ${weightsFile}.${pickled}` })
  }
  if (weights.size > maxBytes) return yield* new Unreadable({ reason: `${weights.path} is larger than ${maxBytes} bytes.` })
  if (config.base === null || !isOnHub(config.base)) {
    const what =
      config.base === null || config.base === ""
        ? "names no base model: base_model_name_or_path of its adapter_config.json is empty"
        : `names its base by a path on the machine where the adapter was made (${config.base.slice(0, 80).replace(/\p{Cc}/gu, " ")}), not by a repository of the hub`
    return yield* new Unreadable({ reason: `${repo} is a LoRA adapter of rank ${config.rank} (${mib(weights.size)}) that ${what}.` })
  }
  const own: OwnAdapter = { config, base: config.base, weights, ...(yield* readTensors(connection, resolved, weights)) }
  return own
})

/** Reads and hashes an adapter's tensors, which may be gigabytes. Only a few megabytes are in memory at once. */
export const hashOnHub = (connection: HubConnection, { commit, repo }: Resolved, { config, dataStart, tensors, weights }: OwnAdapter) => {
  const url = connection.fileUrl(repo, commit, weights.path)
  const read = (from: number, to: number) => connection.readInto(url, dataStart + from, dataStart + to - 1, () => collect(to - from))
  return hashAdapter(config, tensors, read)
}

interface FactsSource {
  readonly connection: HubConnection
  readonly resolved: Resolved
  readonly root: ReadonlyMap<string, RepositoryFile>
  readonly ref: string
  readonly own: OwnAdapter
  readonly base: { readonly facts: RepositoryFacts; readonly modules: BaseModules }
  readonly depth: Depth
}

/** Whether the adapter has its own version of a file of its base. */
const differsFromBase = ({ base, root }: FactsSource, path: string): boolean => {
  const file = root.get(path)
  return file !== undefined && file.blob_id !== base.facts.files.find((baseFile) => baseFile.path === path)?.blob_id
}

interface AdapterTemplate {
  readonly template: AdapterFacts["template"]
  readonly chat_template: string | null
}

/** The chat template. An adapter trained with other prompts than its base's template has its own template. */
const readTemplate = Effect.fnUntraced(function* (source: FactsSource) {
  const { base, connection, depth, resolved, root } = source
  const baseTemplate = base.facts.chat_template
  const unchanged: AdapterTemplate = { template: "base", chat_template: baseTemplate }
  const file = root.get("chat_template.jinja")
  // The file is downloaded even if no request is left to read it.
  if (file !== undefined && file.size > maxTemplateBytes) return yield* new Unreadable({ reason: `${file.path} is larger than ${maxTemplateBytes} bytes.` })
  const mayRead = depth === "all" || connection.sent() + 2 <= previewRequests
  if (!mayRead || !differsFromBase(source, file?.path ?? "tokenizer_config.json")) return unchanged
  if (file !== undefined) {
    const text = writtenTemplate(new TextDecoder().decode(yield* readFile(connection, resolved, file, maxTemplateBytes, () => collect(file.size))))
    const fromFile: AdapterTemplate = { template: "file", chat_template: text }
    return text === baseTemplate ? unchanged : fromFile
  }
  const embedded = chatTemplateOf(yield* readJson(connection, resolved, root, "tokenizer_config.json"))
  if (embedded === null || embedded === baseTemplate) return unchanged
  yield* Effect.fromResult(checkArgumentTemplate(embedded))
  const fromTokenizer: AdapterTemplate = { template: "embedded", chat_template: embedded }
  return fromTokenizer
})

/** How the configuration names the adapted modules. */
const targetFacts = (target: string | ReadonlyArray<string>): Pick<AdapterFacts, "named_by" | "listed"> => {
  if (typeof target !== "string") return { named_by: "list", listed: [...new Set(target)].sort() }
  return { named_by: target === "all-linear" || target === "all" ? "all" : "pattern", listed: [] }
}

/** The facts of an adapter with its base, without the hash of its tensors. Facts about the model come from the base. */
export const adapterFacts = Effect.fnUntraced(function* (source: FactsSource) {
  const { base, own, ref, resolved, root } = source
  const { commit, repo } = resolved
  const { config, tensors } = own
  const modules = yield* Effect.fromResult(checkAdapter(config, tensors, { repo: base.facts.repo, config: base.facts.config, modules: base.modules })).pipe(
    Effect.mapError(({ reason }) => new Unreadable({ reason: `${describeAdapter(repo, own)} at commit ${base.facts.commit}. ${reason}` }))
  )
  const { chat_template, template } = yield* readTemplate(source)
  const adapter: AdapterFacts = {
    base: { repo: base.facts.repo, commit: base.facts.commit, files: base.facts.files },
    rank: modules.rank,
    uniform: modules.uniform,
    alpha: config.alpha,
    rslora: config.rslora,
    ...targetFacts(config.target),
    targets: modules.targets,
    unpaired: modules.unpaired,
    experts: modules.experts,
    bytes: modules.bytes,
    template,
    content_hash: null
  }
  // The list is pinned by its hash, so it must not depend on how much was read.
  const ownTemplate = differsFromBase(source, "chat_template.jinja") ? ["chat_template.jinja"] : []
  const paths = new Set(["adapter_config.json", weightsFile, ...ownTemplate])
  const facts: RepositoryFacts = {
    ...base.facts,
    repo,
    ref,
    commit,
    license: resolved.license.name ?? base.facts.license,
    gated: resolved.gated || base.facts.gated,
    files: [...root.values()].filter(({ path }) => paths.has(path)).sort((a, b) => (a.path < b.path ? -1 : 1)),
    chat_template,
    adapter
  }
  return facts
})
