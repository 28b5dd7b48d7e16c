import { computeNumOfParamsByDtypeSingleFile, type ListFileEntry, listFiles, modelInfo } from "@huggingface/hub"
import { Commit, type RepositoryFacts, type RepositoryFile } from "@seatrial/domain"
import { Effect, Option, type Redacted, Result, Schema } from "effect"
import { parseJsonObject } from "./boundedJson.ts"
import { matchesCommit } from "./contentHash.ts"
import { HubRefusal, HubUnavailable, Unreadable } from "./failures.ts"
import { connect, type HubConnection } from "./HubConnection.ts"
import type { HubSettings } from "./HubSettings.ts"
import { asksForCode, chatTemplateOf, parseModelConfig } from "./modelConfig.ts"
import { headerLength, joinShards, maxHeaderBytes, parseHeader, parseIndex, type Tensor, tensorBytes } from "./safetensors.ts"
import { isRepoName, licenseRefused, noHubConnection, refusalOf, remoteCodeRequired, unknownRepository, unsupportedFormat } from "./screening.ts"
import { chooseWeights, indexPattern, isPlainPath, isServingFile, otherFormats, weightsPattern } from "./servingFiles.ts"

/** Largest configuration file that is read, in bytes. */
const maxConfigBytes = 10 * 1024 * 1024
/** Most files that a repository may have in its root. */
const maxFiles = 5_000
/** Most weight files; the largest models of today have a few hundred. */
const maxShards = 1_000
/** First read of a weight file: holds the whole header of nearly every shard, so that one request does. */
const firstRead = 128 * 1024
const parallelReads = 6

const Info = Schema.Struct({
  sha: Commit,
  gated: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.String])),
  private: Schema.optionalKey(Schema.Boolean),
  tags: Schema.optionalKey(Schema.Array(Schema.String)),
  cardData: Schema.optionalKey(Schema.Unknown)
})

const License = Schema.Struct({ license: Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.String)]) })

const licenseOf = (info: typeof Info.Type): string | null => {
  const card = Schema.decodeUnknownOption(License)(info.cardData)
  if (Option.isSome(card)) {
    const { license } = card.value
    return (typeof license === "string" ? license : license[0]).toLowerCase().slice(0, 100)
  }
  return (
    info.tags
      ?.find((tag) => tag.startsWith("license:"))
      ?.slice("license:".length, 108)
      .toLowerCase() ?? null
  )
}

const Entry = Schema.Struct({
  path: Schema.String,
  size: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 50 })),
  oid: Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}$/u)),
  lfs: Schema.optionalKey(Schema.Struct({ oid: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)), size: Schema.Int }))
})

const toFile = (entry: ListFileEntry): Result.Result<RepositoryFile, Unreadable> => {
  const known = Schema.decodeUnknownOption(Entry)(entry)
  if (Option.isNone(known)) return Result.fail(new Unreadable({ reason: "The repository lists a file without a credible size and hash." }))
  const { lfs, oid, path, size } = known.value
  return Result.succeed({ path, size: lfs?.size ?? size, blob_id: oid, sha256: lfs?.oid ?? null })
}

/** The files of the repository's root, by path. */
const listRoot = Effect.fnUntraced(function* (connection: HubConnection, repo: string, commit: Commit) {
  const entries = yield* connection.library(async (params) => {
    const found: Array<ListFileEntry> = []
    for await (const entry of listFiles({ ...params, repo: { type: "model", name: repo }, revision: commit })) {
      found.push(entry)
      if (found.length > maxFiles) break
    }
    return found
  })
  if (entries.length > maxFiles) return yield* new Unreadable({ reason: `The repository has more than ${maxFiles} files.` })
  const files = new Map<string, RepositoryFile>()
  for (const entry of entries) {
    if (!isPlainPath(entry.path)) return yield* new Unreadable({ reason: "The repository lists a file whose name is no plain path." })
    if (entry.type !== "file") continue
    const file = yield* Effect.fromResult(toFile(entry))
    files.set(file.path, file)
  }
  return files
})

/** Reads whole small files of the commit and checks that they are the commit's. */
const readFile = Effect.fnUntraced(function* (connection: HubConnection, repo: string, commit: Commit, file: RepositoryFile, limit: number) {
  if (file.size > limit) return yield* new Unreadable({ reason: `${file.path} is larger than ${limit} bytes.` })
  if (file.size === 0) return new Uint8Array()
  const bytes = yield* connection.readRange(connection.fileUrl(repo, commit, file.path), 0, file.size - 1)
  if (!matchesCommit(bytes, file))
    return yield* new HubUnavailable({ message: `The model hub sends a ${file.path} that differs from commit ${commit.slice(0, 7)}.` })
  return bytes
})

const readTensors = Effect.fnUntraced(function* (connection: HubConnection, repo: string, commit: Commit, file: RepositoryFile) {
  const url = connection.fileUrl(repo, commit, file.path)
  const first = file.size === 0 ? new Uint8Array() : yield* connection.readRange(url, 0, Math.min(file.size, firstRead) - 1)
  const length = yield* Effect.fromResult(headerLength(first, file.size, file.path))
  const header = length + 8 <= first.length ? first.subarray(8, 8 + length) : yield* connection.readRange(url, 8, 7 + length)
  return yield* Effect.fromResult(parseHeader(header, file.size - 8 - length, file.path))
})

/** Parameters, with the values that quantized formats pack into one element counted apart. */
const countParameters = (tensors: ReadonlyMap<string, Tensor>, config: Readonly<Record<PropertyKey, unknown>>): number => {
  const header = Object.fromEntries(
    [...tensors].map(([name, { data_offsets, dtype, shape }]) => [
      name,
      { dtype, shape: [...shape], data_offsets: [data_offsets[0], data_offsets[1]] satisfies [number, number] }
    ])
  )
  const quantization = Schema.decodeUnknownOption(Quantization)(config.quantization_config)
  const counts = computeNumOfParamsByDtypeSingleFile(header, Option.getOrUndefined(quantization))
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}
/** The part of `quantization_config` that the count depends on. */
const Quantization = Schema.Struct({
  quant_method: Schema.optionalKey(Schema.String),
  bits: Schema.optionalKey(Schema.Finite),
  load_in_4bit: Schema.optionalKey(Schema.Boolean),
  format: Schema.optionalKey(Schema.String),
  modules_to_not_convert: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  ignore: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String)))
})

const dominantType = (tensors: Iterable<Tensor>): string => {
  const bytes = new Map<string, number>()
  for (const tensor of tensors) bytes.set(tensor.dtype, (bytes.get(tensor.dtype) ?? 0) + tensorBytes([tensor]))
  return [...bytes].reduce((best, next) => (next[1] > best[1] ? next : best), ["F32", 0])[0]
}

/** The service's `inspect`: one request for the commit, one for the list, then the small files and each weight file's header, some at a time. */
export const inspect = (settings: HubSettings) =>
  Effect.fn("Hub.inspect")(function* (source: { readonly repo: string; readonly ref?: string | undefined }, token: Option.Option<Redacted.Redacted<string>>) {
    const { repo } = source
    const ref = source.ref ?? "main"
    const connection = connect(settings, token)
    const asked = { repo, ref, hasToken: Option.isSome(token), commit: null }

    if (!isRepoName(repo)) return yield* unknownRepository(asked)

    const answered = yield* connection
      .library((params) =>
        modelInfo({ ...params, name: repo, additionalFields: ["sha", "cardData", "tags"], ...(source.ref === undefined ? {} : { revision: source.ref }) })
      )
      .pipe(Effect.catchTag("HubAnswer", (answer) => refusalOf(answer, asked)))
    const info = yield* Schema.decodeUnknownEffect(Info)(answered).pipe(
      Effect.mapError(() => new HubUnavailable({ message: "The model hub describes the repository in a way that is not understood." }))
    )
    const commit = info.sha
    const license = licenseOf(info)
    const gated = info.gated !== undefined && info.gated !== false
    if (license !== null && settings.deniedLicenses.includes(license)) return yield* licenseRefused(license, commit)
    if (gated && Option.isNone(token)) return yield* noHubConnection({ ...asked, commit })

    return yield* readCommit(connection, { repo, ref, commit, license, gated }).pipe(
      Effect.catchTags({
        HubAnswer: (answer) => refusalOf(answer, { ...asked, commit }),
        Unreadable: ({ reason }) => unsupportedFormat(reason, commit),
        UnsupportedArchitecture: ({ reason }) =>
          new HubRefusal({
            code: "unsupported_architecture",
            message: reason,
            remedy: "Name a repository of a decoder model for text in the layout of Transformers.",
            commit
          })
      })
    )
  })

const readCommit = Effect.fnUntraced(function* (
  connection: HubConnection,
  head: { readonly repo: string; readonly ref: string; readonly commit: Commit; readonly license: string | null; readonly gated: boolean }
) {
  const { commit, repo } = head
  const root = yield* listRoot(connection, repo, commit)
  const weights = chooseWeights(root)
  if (weights.index === null && weights.single.length === 0) {
    return yield* new Unreadable({ reason: `The repository has no safetensors weights: it has ${otherFormats([...root.keys()])}.` })
  }
  if (!root.has("config.json")) return yield* new Unreadable({ reason: "The repository has no config.json." })
  if (!root.has("tokenizer.json") && !root.has("tokenizer.model") && !(root.has("vocab.json") && root.has("merges.txt"))) {
    return yield* new Unreadable({ reason: "The repository has no tokenizer." })
  }

  const readJson = Effect.fnUntraced(function* (path: string) {
    const file = root.get(path)
    if (file === undefined) return {}
    const bytes = yield* readFile(connection, repo, commit, file, maxConfigBytes)
    return yield* Effect.fromResult(parseJsonObject(bytes, path))
  })
  const template = root.get("chat_template.jinja")
  const small = yield* Effect.all(
    {
      config: readJson("config.json"),
      tokenizer: readJson("tokenizer_config.json"),
      generation: readJson("generation_config.json"),
      processor: readJson("processor_config.json"),
      preprocessor: readJson("preprocessor_config.json"),
      templateJson: template === undefined ? readJson("chat_template.json") : Effect.succeed({}),
      template: template === undefined ? Effect.succeed(null) : readFile(connection, repo, commit, template, maxConfigBytes),
      index: weights.index === null ? Effect.succeed(null) : readFile(connection, repo, commit, weights.index, maxHeaderBytes)
    },
    { concurrency: parallelReads }
  )
  const sources = {
    "config.json": small.config,
    "tokenizer_config.json": small.tokenizer,
    "generation_config.json": small.generation,
    "processor_config.json": small.processor,
    "preprocessor_config.json": small.preprocessor
  }
  for (const [file, json] of Object.entries(sources)) if (asksForCode(json)) return yield* remoteCodeRequired(file, commit)

  const listed = new Set([...root.keys()].filter((path) => weightsPattern.test(path)))
  const index = weights.index === null || small.index === null ? null : yield* Effect.fromResult(parseIndex(small.index, weights.index.path, listed))
  const shards = index === null ? weights.single : [...root.values()].filter(({ path }) => index.has(path))
  if (shards.length > maxShards) return yield* new Unreadable({ reason: `The repository has more than ${maxShards} weight files.` })
  const headers = yield* Effect.forEach(shards, (file) => Effect.map(readTensors(connection, repo, commit, file), (tensors) => [file.path, tensors] as const), {
    concurrency: parallelReads
  })
  const tensors = yield* Effect.fromResult(joinShards(new Map(headers), index))
  const config = yield* Effect.fromResult(parseModelConfig(small.config, dominantType(tensors.values())))
  const weights_bytes = tensorBytes(tensors.values())
  if (!Number.isSafeInteger(weights_bytes)) return yield* new Unreadable({ reason: "The repository's weights are larger than any machine." })

  const loaded = new Set(shards.map(({ path }) => path))
  const facts: RepositoryFacts = {
    ...head,
    files: [...root.values()]
      .filter(({ path }) => (weightsPattern.test(path) ? loaded.has(path) : indexPattern.test(path) ? path === weights.index?.path : isServingFile(path)))
      .sort((a, b) => (a.path < b.path ? -1 : 1)),
    config,
    weights_bytes,
    parameters: countParameters(tensors, small.config),
    chat_template: small.template === null ? (chatTemplateOf(small.templateJson) ?? chatTemplateOf(small.tokenizer)) : new TextDecoder().decode(small.template)
  }
  return facts
})
