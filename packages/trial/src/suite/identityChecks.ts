import { optionalNullable } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { seconds, type TrialCheck, unexpected } from "./Check.ts"
import type { SuiteSubject } from "./SuiteSubject.ts"

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
    if (start.verifiedFiles === null) return yield* unexpected("no file was compared with the commit's hashes before the engine started")
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

const decodeModels = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ data: Schema.NonEmptyArray(Schema.Struct({ id: Schema.String, max_model_len: optionalNullable(Schema.Int) })) }))
)
const decodeInfo = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ weight_version: Schema.String })))
const decodeVersion = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/**
 * Whether the reported version equals the version of the revision. Some engines report "vllm-1.2.3", others only the
 * release.
 */
const isVersion = (engineVersion: string, reported: string): boolean =>
  reported !== "" && (engineVersion === reported || engineVersion.endsWith(`-${reported}`))

/** The engine lists the model under its name, with the longest context. */
const isListed = Effect.fnUntraced(function* ({ client, listedName, maxContext, servedName }: SuiteSubject) {
  const listed = yield* client.get("/v1/models")
  const models = decodeModels(listed.text)
  if (listed.status !== 200 || Option.isNone(models)) return yield* unexpected(`HTTP ${listed.status} for the list of models`, { status: listed.status })
  const model = models.value.data.find(({ id }) => id === (listedName ?? servedName))
  if (model === undefined) return yield* unexpected("it serves the model under another name")
  if (model.max_model_len != null && model.max_model_len !== maxContext) return yield* unexpected(`longest context ${model.max_model_len}, not ${maxContext}`)
})

/** Whether the engine reports its version. Fails if it is another one. */
const reportsVersion = Effect.fnUntraced(function* ({ client, engineVersion }: SuiteSubject) {
  const reported = yield* client.get("/version")
  const version = reported.status === 200 ? decodeVersion(reported.text) : Option.none()
  if (Option.isNone(version)) return false
  return isVersion(engineVersion, version.value.version) ? true : yield* unexpected("it is of another version")
})

/** Whether the engine names the commit of its weights. Fails if it is another one. */
const namesCommit = Effect.fnUntraced(function* ({ client, offers, repository }: SuiteSubject) {
  if (offers.weightVersion === undefined) return false
  const info = yield* client.get(offers.weightVersion)
  const weights = info.status === 200 ? decodeInfo(info.text) : Option.none()
  if (Option.isNone(weights)) return yield* unexpected(`HTTP ${info.status} when asked which weights it loaded`, { status: info.status })
  const { weight_version } = weights.value
  // The engine's default if nothing was set, as with an engine that an earlier version of Seatrial started.
  if (weight_version === "default") return false
  return weight_version === repository.commit ? true : yield* unexpected("it serves the weights of another commit")
})

/** The engine is the requested one: name, longest context, version, image. */
export const engineIdentity: TrialCheck = {
  name: "engine_identity",
  class: "required",
  purpose: "Served name, version, image and longest context are the revision's",
  limitSeconds: seconds(5),
  run: Effect.fnUntraced(function* (subject) {
    const { maxContext, start } = subject
    yield* isListed(subject)
    const hasVersion = yield* reportsVersion(subject)
    const hasCommit = yield* namesCommit(subject)
    if (start.ownImage === false) return yield* unexpected("it runs another image than the revision's")
    const unreported = [...(hasVersion ? [] : ["version"]), ...(start.ownImage === null ? ["image"] : [])]
    const notes = [hasCommit ? ", reports the revision's commit" : "", unreported.length === 0 ? "" : `, ${unreported.join(" and ")} not reported`]
    return `context ${maxContext}${notes.join("")}`
  })
}
