import { optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import type { PinnedRepository } from "./SuiteSubject.ts"

/**
 * The engine reads the files of the commit: they were verified before it started, and are mounted read-only without
 * access to others.
 */
export const filesMatchCommit: TrialCheck = {
  name: "files_match_commit",
  class: "required",
  purpose: "The engine reads the files of the pinned commit, byte for byte, and no others",
  limitSeconds: seconds(5),
  run: Effect.fnUntraced(function* ({ start }) {
    if (start.verifiedFiles === null) return yield* unexpected("no file was held to the commit's hashes before the engine started")
    if (!start.readOnly) return yield* unexpected("the files can be written to")
    if (!start.offline) return yield* unexpected("the engine may read from the hub")
    if (!start.localPath) return yield* unexpected("the engine was started with another folder than the commit's")
    return `${start.verifiedFiles} files, read-only, offline`
  })
}

/** Maximum size of the headers in safetensors files: the bytes for some hundred thousand tensors. */
const mostHeaderBytes = 100_000_000

/**
 * The weight files contain all tensors that their headers state. The headers were read with the repository and match
 * its configuration.
 */
export const tensorsComplete: TrialCheck = {
  name: "tensors_complete",
  class: "required",
  purpose: "Every shard and tensor that the headers state is there, to the last byte",
  limitSeconds: seconds(5),
  run: Effect.fnUntraced(function* ({ repository: { config, parameters, weights, weightsBytes } }) {
    const stored = weights.reduce((sum, { size }) => sum + size, 0)
    if (weights.length === 0) return yield* unexpected("no weight files")
    if (weights.some(({ size }) => size <= 8)) return yield* unexpected("a weight file without a header")
    const headers = stored - weightsBytes
    if (headers < weights.length * 8) return yield* unexpected(`${weights.length} files of ${stored} bytes cannot hold ${weightsBytes} bytes of tensors`)
    if (headers > mostHeaderBytes) return yield* unexpected(`${headers} bytes of ${stored} belong to no tensor`)
    const embedding = config.vocab_size * config.hidden_size
    if (parameters < embedding) return yield* unexpected(`${parameters} parameters, fewer than the ${embedding} of the embedding`)
    return `${weights.length} files, ${weightsBytes} bytes of tensors, ${parameters} parameters`
  })
}

const EndIds = optionalNullable(Schema.Union([Schema.Int, Schema.Array(Schema.Int)]))
const ends = { eos_token_id: EndIds, vocab_size: optionalNullable(Schema.Int) }
const Config = Schema.fromJsonString(
  Schema.Struct({
    ...ends,
    text_config: optionalNullable(Schema.Struct(ends)),
    num_hidden_layers: optionalNullable(Schema.Int),
    layer_types: optionalNullable(Schema.Array(Schema.String))
  })
)
const decodeConfig = Schema.decodeUnknownOption(Config)
const decodeGeneration = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ eos_token_id: EndIds })))
const Token = optionalNullable(Schema.Union([Schema.String, Schema.Struct({ content: Schema.String })]))
const decodeTokens = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ eos_token: Token })))

const idsOf = (value: number | ReadonlyArray<number> | null | undefined): ReadonlyArray<number> =>
  value == null ? [] : typeof value === "number" ? [value] : value

/** The ids that end an answer, as the configuration and the generation settings state them. */
const configuredEnds = (small: ReadonlyMap<string, string>) => {
  const own = Option.getOrNull(decodeConfig(small.get("config.json")))
  return {
    own,
    configured: idsOf(own?.eos_token_id ?? own?.text_config?.eos_token_id),
    generation: idsOf(Option.getOrNull(decodeGeneration(small.get("generation_config.json")))?.eos_token_id)
  }
}

/**
 * The ids that end an answer in every engine, from the generation settings, or from the configuration if the settings
 * name none.
 */
export const endIdsOf = ({ small }: Pick<PinnedRepository, "small">): ReadonlySet<number> => {
  const { configured, generation } = configuredEnds(small)
  return new Set(generation.length > 0 ? generation : configured)
}

/** Layers of the heads that predict further tokens may follow: engines read as many types as there are layers. */
const layerTypesFault = (own: ReturnType<typeof configuredEnds>["own"]): string | null => {
  if (own?.layer_types == null || own.num_hidden_layers == null || own.layer_types.length >= own.num_hidden_layers) return null
  return `${own.layer_types.length} types for ${own.num_hidden_layers} layers`
}

/** The end token that the tokenizer's settings name. */
const tokenizerEnd = (small: ReadonlyMap<string, string>): string | undefined => {
  const { eos_token } = Option.getOrElse(decodeTokens(small.get("tokenizer_config.json")), () => ({ eos_token: null }))
  return typeof eos_token === "string" ? eos_token : eos_token?.content
}

const idOf = Effect.fnUntraced(function* (tokenizer: PinnedRepository["tokenizer"], token: string | undefined) {
  return token === undefined || tokenizer === null ? null : ((yield* tokenizer.find([token]))[0] ?? null)
})

const templateEndNote = (known: ReadonlySet<number>, ending: number | null): string => {
  if (ending === null) return ""
  return known.has(ending) ? ", the template's among them" : `, not the template's ${ending}`
}

/** Configuration, generation settings, tokenizer and template describe the same model. */
export const configCoherent: TrialCheck = {
  name: "config_coherent",
  class: "required",
  purpose: "Configuration, generation settings, tokenizer and template agree on vocabulary, layers and end-of-turn tokens",
  limitSeconds: seconds(5),
  run: Effect.fnUntraced(function* ({ repository: { config, small, template, tokenizer } }) {
    const rows = config.vocab_size
    // An added token without an embedding row is harmless if no text contains it.
    const beyond = tokenizer?.added.filter(({ id }) => id >= rows) ?? []
    const highest = tokenizer === null ? -1 : Math.max(tokenizer.vocabulary - 1, ...(yield* tokenizer.encode(["a"], true)).flat())
    if (highest >= rows) return yield* unexpected(`the tokenizer gives ids up to ${highest}, the embedding has ${rows} rows`)
    const { configured, generation, own } = configuredEnds(small)
    const layerFault = layerTypesFault(own)
    if (layerFault !== null) return yield* unexpected(layerFault)
    const outside = [...configured, ...generation].find((id) => id < 0 || id >= rows)
    if (outside !== undefined) return yield* unexpected(`end-of-turn id ${outside} in a vocabulary of ${rows}`)
    const text = tokenizerEnd(small)
    const tokenId = yield* idOf(tokenizer, text)
    if (tokenId !== null && tokenId >= rows) return yield* unexpected(`end-of-turn id ${tokenId} in a vocabulary of ${rows}`)
    const known = new Set([...configured, ...generation, ...(tokenId === null ? [] : [tokenId])])
    if (known.size === 0 && tokenizer !== null) return yield* unexpected("no end-of-turn token is named anywhere")
    // The mark after an answer. The template of a base model may write a mark that the model was never trained on, so
    // the check only reports it.
    const marks = { role: "user", content: "a" }
    const conversation = { messages: [marks, { role: "assistant", content: "qqq" }, marks] }
    const rendered = (template === null ? null : (yield* template.render([conversation]))[0]) ?? ""
    const written = beyond.find(({ content }) => rendered.includes(content))
    if (written !== undefined) return yield* unexpected(`the template writes id ${written.id}, the embedding has ${rows} rows`)
    const after = rendered.split("qqq")[1] ?? ""
    const mark = tokenizer?.special.find((special) => after.startsWith(special))
    const ending = yield* idOf(tokenizer, mark)
    // The library adds this token beyond the trained vocabulary. It ends nothing, as long as another token does.
    const isUnknownEnd = text !== undefined && text !== "" && tokenizer !== null && tokenId === null
    return `${known.size} end ids${templateEndNote(known, ending)}${isUnknownEnd ? ", not the tokenizer's own, which it does not know" : ""}${
      beyond.length === 0 ? "" : `, ${beyond.length} added tokens beyond the embedding`
    }`
  })
}

const decodeModels = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ data: Schema.NonEmptyArray(Schema.Struct({ id: Schema.String, max_model_len: optionalNullable(Schema.Int) })) }))
)
const decodeInfo = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ weight_version: Schema.String })))
const decodeVersion = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/** Whether the reported version equals the version of the revision. Some engines report "vllm-1.2.3", others only the release. */
const isVersion = (engineVersion: string, reported: string): boolean =>
  reported !== "" && (engineVersion === reported || engineVersion.endsWith(`-${reported}`))

/** The engine is the requested one: name, longest context, version, image. */
export const engineIdentity: TrialCheck = {
  name: "engine_identity",
  class: "required",
  purpose: "Served name, version, image and longest context are the revision's",
  limitSeconds: seconds(5),
  run: Effect.fnUntraced(function* ({ client, engineVersion, listedName, maxContext, offers, repository, servedName, start }) {
    const listed = yield* client.get("/v1/models")
    const models = decodeModels(listed.text)
    if (listed.status !== 200 || Option.isNone(models)) return yield* unexpected(`HTTP ${listed.status} for the list of models`, { status: listed.status })
    const model = models.value.data.find(({ id }) => id === (listedName ?? servedName))
    if (model === undefined) return yield* unexpected("it serves the model under another name")
    if (model.max_model_len != null && model.max_model_len !== maxContext) return yield* unexpected(`longest context ${model.max_model_len}, not ${maxContext}`)
    const reported = yield* client.get("/version")
    const version = reported.status === 200 ? decodeVersion(reported.text) : Option.none()
    if (Option.isSome(version) && !isVersion(engineVersion, version.value.version)) return yield* unexpected("it is of another version")
    let revisionName = "default"
    if (offers.weightVersion !== undefined) {
      const info = yield* client.get(offers.weightVersion)
      const weights = info.status === 200 ? decodeInfo(info.text) : Option.none()
      if (Option.isNone(weights)) return yield* unexpected(`HTTP ${info.status} for which weights it was given`, { status: info.status })
      revisionName = weights.value.weight_version
      // The engine's default if nothing was set, as with an engine that an earlier version of Seatrial started.
      if (revisionName !== "default" && revisionName !== repository.commit) return yield* unexpected("it serves the weights of another commit")
    }
    if (start.ownImage === false) return yield* unexpected("it runs another image than the revision's")
    const untold = [...(Option.isNone(version) ? ["version"] : []), ...(start.ownImage === null ? ["image"] : [])]
    return `context ${maxContext}${revisionName === "default" ? "" : ", the commit's weights by its own word"}${untold.length === 0 ? "" : `, ${untold.join(" and ")} not told`}`
  })
}
