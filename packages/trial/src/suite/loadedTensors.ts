import type { LoadedTensors, TensorPrefix } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { type FloatFormat, floatFormats } from "../fidelity/floatFormats.ts"
import { NotApplicable, seconds, type TrialCheck, unexpected } from "./Check.ts"
import type { PinnedRepository, SuiteSubject } from "./SuiteSubject.ts"

const head = "lm_head.weight"

/**
 * The tensors whose first values are compared, by their names in the files: the embedding, the last norm, the output
 * head.
 */
export const comparedTensors: ReadonlyArray<string> = ["model.embed_tokens.weight", "model.norm.weight", head]

const decodeValues = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Array(Schema.Union([Schema.Finite, Schema.Array(Schema.Finite)])).check(Schema.isMinLength(1)))
)
const decodeChecksum = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ success: Schema.Literal(true), per_engine_checksum: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)) }))
)
const decodeTied = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ tie_word_embeddings: Schema.optionalKey(Schema.Boolean) })))

/** Names of number formats, by their names in configurations. */
const formatNames: Readonly<Record<string, string>> = { bfloat16: "BF16", float16: "F16", float32: "F32" }

/**
 * The formats to which values may be rounded when they are loaded. For a configuration of 32 bits the engine chooses.
 */
const roundings = ({ type }: LoadedTensors, { config }: PinnedRepository, { dtype }: TensorPrefix): ReadonlyArray<FloatFormat> => {
  const names = type !== "auto" ? [formatNames[type]] : config.dtype === "float32" ? [...floatFormats.keys()] : [dtype, formatNames[config.dtype]]
  return names.flatMap((name) => floatFormats.get(name ?? "") ?? [])
}

const valuesOf = ({ bytes, dtype }: TensorPrefix): ReadonlyArray<number> => {
  const format = floatFormats.get(dtype)
  if (format === undefined) return []
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return Array.from({ length: Math.floor(bytes.length / format.bytes) }, (_, at) =>
    format.decode(format.bytes === 2 ? view.getUint16(at * 2, true) : view.getUint32(at * 4, true))
  )
}

const sizeOf = ({ shape }: TensorPrefix): number => shape.reduce((product, side) => product * side, 1)

/**
 * HTTP statuses of an engine that does not report values: the model class does not support it, or the engine requires a
 * key.
 */
const unsupportedStatuses = new Set([400, 401, 403])

/** The hash of the newest earlier trial that has one. */
const earlierChecksum = (earlier: SuiteSubject["earlier"]): string | undefined =>
  earlier.find(({ loadedChecksum }) => loadedChecksum != null)?.loadedChecksum ?? undefined

/**
 * The tensors to compare. The engine reports a head that is tied to the embedding as the embedding, regardless of the
 * other tensors in the files.
 */
const candidatesOf = ({ firstValues = [], repository }: SuiteSubject): ReadonlyArray<TensorPrefix> => {
  const isTied = Option.getOrNull(decodeTied(repository.small.get("config.json")))?.tie_word_embeddings === true
  return firstValues.filter(({ name }) => !(isTied && name === head))
}

/** Compares a tensor with the file. Succeeds with the number of its values; null if the engine does not report it. */
const compareTensor = Effect.fnUntraced(function* ({ client, repository }: SuiteSubject, loaded: LoadedTensors, tensor: TensorPrefix) {
  const own = valuesOf(tensor)
  const [, ...row] = tensor.shape
  const width = row.reduce((product, side) => product * side, 1)
  const answer = yield* client.post(loaded.values, JSON.stringify({ name: tensor.name, truncate_size: Math.max(1, Math.ceil(own.length / width)) }))
  if (unsupportedStatuses.has(answer.status)) return null
  const reported = Option.getOrNull(decodeValues(answer.text))?.flat().slice(0, own.length) ?? []
  if (answer.status !== 200 || reported.length < own.length)
    return yield* unexpected(`HTTP ${answer.status}, ${reported.length} of ${own.length} values of ${tensor.name}`, { status: answer.status })
  const wrong = Math.min(
    ...roundings(loaded, repository, tensor).map(({ decode, encode }) => own.filter((value, at) => decode(encode(value)) !== reported[at]).length)
  )
  if (wrong > 0) return yield* unexpected(`${wrong} of the first ${own.length} values of ${tensor.name} are not the file's`)
  return own.length
})

/** The engine's hash over all tensors, and whether an earlier start had the same; null if it reports none. */
const compareChecksum = Effect.fnUntraced(function* ({ client, earlier }: SuiteSubject, { checksum }: LoadedTensors) {
  const hashed = yield* client.post(checksum, JSON.stringify({ action: "checksum" }))
  const now = hashed.status === 200 ? Option.getOrUndefined(decodeChecksum(hashed.text))?.per_engine_checksum.slice(0, 16) : undefined
  if (now === undefined) return null
  const before = earlierChecksum(earlier)
  if (before !== undefined && now !== before) return yield* unexpected(`checksum ${now} of all that is loaded, ${before} at an earlier start`)
  return { hash: now, isAsBefore: before !== undefined }
})

/**
 * The engine loaded the files of the commit: its values equal the values in the files, and its hash over all tensors
 * equals the hash of an earlier start. The check passes the hash to `keep`.
 */
export const loadedTensors = (keep: (checksum: string) => void): TrialCheck => ({
  name: "loaded_tensors",
  class: "required",
  purpose: "The loaded tensors begin with the values of the commit's files, and equal those of an earlier start",
  limitSeconds: seconds(30),
  skipped: ({ firstValues = [], offers, repository }) =>
    offers.loadedTensors === undefined
      ? "the engine reports no tensor values"
      : repository.config.quantization !== "none"
        ? "quantized"
        : firstValues.length === 0
          ? "no tensor of a known name"
          : null,
  run: Effect.fnUntraced(function* (subject) {
    const { loadedTensors: loaded } = subject.offers
    if (loaded === undefined) return yield* new NotApplicable({ reason: "the engine reports no tensor values" })
    const candidates = candidatesOf(subject)
    const readable = candidates.filter((tensor) => sizeOf(tensor) <= loaded.mostValues)
    const counts = yield* Effect.forEach(readable, (tensor) => compareTensor(subject, loaded, tensor))
    const compared = counts.filter((count) => count !== null)
    if (compared.length === 0) return yield* new NotApplicable({ reason: "the engine reports no tensor values of this model" })
    const checksum = yield* compareChecksum(subject, loaded)
    if (checksum !== null) keep(checksum.hash)
    const sum = compared.reduce((all, count) => all + count, 0)
    const large = candidates.length - readable.length
    const left = large === 0 ? "" : `, ${large} too large to be asked for`
    const hash = checksum === null ? "no checksum" : `checksum ${checksum.hash}${checksum.isAsBefore ? " as before" : ""}`
    return `${sum} values of ${compared.length} tensors are the files'${left}, ${hash}`
  })
})
