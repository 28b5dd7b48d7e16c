import { readFileSync } from "node:fs"
import { type ModelCapabilities, ModelReference, modelCapabilities, type TensorPrefix } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { type TrainedName, trainedFiles } from "@seatrial/reference-engine/sample"
import { comparedTensors, makeEngineClient, readRepository, runSuite, type SuiteSubject, suiteChecks, thresholds } from "@seatrial/trial"
import { Effect, Schema } from "effect"
import { factsOf } from "./sampleFacts.ts"
import type { Files, Served } from "./serveSample.ts"

const Tensor = Schema.Struct({ dtype: Schema.String, shape: Schema.Array(Schema.Int), data_offsets: Schema.Tuple([Schema.Int, Schema.Int]) })
const Header = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Union([Tensor, Schema.Record(Schema.String, Schema.String)])))

/** The first values of the tensors in the pinned files, as the hub returns them. */
const firstValuesOf = (pinned: Files): ReadonlyArray<TensorPrefix> => {
  const bytes = pinned.get("model.safetensors") ?? new Uint8Array()
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  const tensors = Schema.decodeUnknownSync(Header)(Buffer.from(bytes.subarray(8, 8 + length)).toString("utf8"))
  return comparedTensors.flatMap((name) => {
    const tensor = tensors[name]
    if (tensor === undefined || !("shape" in tensor) || typeof tensor.shape === "string" || typeof tensor.data_offsets === "string") return []
    const from = 8 + length + tensor.data_offsets[0]
    return [{ name, dtype: tensor.dtype, shape: tensor.shape, bytes: bytes.slice(from, from + 2 * thresholds.loadedValues) }]
  })
}

const same = (a: Uint8Array | undefined, b: Uint8Array | undefined) => a !== undefined && b !== undefined && Buffer.compare(a, b) === 0

/** The files of the engine, or null if one of them differs from the commit. */
const verified = (pinned: Files, files: Files): number | null => ([...pinned].every(([name, bytes]) => same(bytes, files.get(name))) ? pinned.size : null)

const reference = engineFor("reference")

/** What Transformers computes for `tiny-chat`. `npm run test:models -- transformers` computes it again. */
export const tinyReference = Schema.decodeUnknownSync(Schema.fromJsonString(ModelReference))(
  readFileSync(new URL("tiny-chat.reference.json", import.meta.url), "utf8")
)

/** All features of the reference engine, even those that the gateway does not support yet. */
const able = (capabilities: ModelCapabilities): ModelCapabilities => ({
  ...capabilities,
  supports_tool_calls: true,
  supports_json_mode: true,
  supports_structured_output: true,
  tool_calling: {
    tool_choice: { auto: true, required: true, named: true, none: true },
    parallel_calls: true,
    single_call: true,
    strict_arguments: true,
    tool_results: true
  }
})

export type Earlier = SuiteSubject["earlier"]

export interface Trying {
  /** The repository to serve, at its last commit. */
  readonly model?: TrainedName
  readonly earlier?: Earlier
  /** The known size of the model, which determines the number of items. */
  readonly parameters?: number
  readonly change?: (subject: SuiteSubject) => SuiteSubject
  /** The rows to run. */
  readonly rows?: (name: string) => boolean
  /** Maximum seconds for filling the cache. By default enough for a slow, busy machine. */
  readonly pressureSeconds?: number
}

/** The subject of a trial of an engine with the sample model. It lives until the scope closes. */
export const sampleSubject = Effect.fnUntraced(function* (
  served: Served,
  { change = (subject) => subject, earlier = [], model = "tiny-chat", parameters }: Omit<Trying, "rows" | "pressureSeconds"> = {}
) {
  const pinned = trainedFiles(model)
  const facts = factsOf(model, pinned)
  if (reference === undefined) return yield* Effect.die(new Error("there is no reference engine"))
  const small = new Map([...pinned].filter(([name]) => name.endsWith(".json")))
  const subject: SuiteSubject = {
    client: yield* makeEngineClient({ url: served.url, timeout: "60 seconds", work: reference.wire.trialMetrics.work }),
    servedName: "m",
    maxContext: 1_024,
    engineVersion: served.version,
    vocabSize: facts.config.vocab_size,
    chat: true,
    card: "Simulated x1",
    salt: "",
    seed: 1,
    parameters: parameters ?? facts.parameters,
    slots: 64,
    offers: reference.offers({ runtime: "reference", host_class: "sim", max_context: 1_024, kv_cache_dtype: "auto" }, false),
    metrics: reference.wire.trialMetrics,
    batchInvariant: false,
    capabilities: able(modelCapabilities(reference.served, facts)),
    repository: yield* readRepository({ facts, files: facts.files, commit: facts.commit, small }),
    firstValues: firstValuesOf(pinned),
    start: { verifiedFiles: verified(pinned, served.files), readOnly: true, offline: true, localPath: true, ownImage: null },
    reference: model === "tiny-chat" ? tinyReference : null,
    earlier,
    cacheTokens: (metrics) => reference.measured({ metrics, log: "" }).kv_cache_tokens
  }
  return change(subject)
})

/** Runs the check suite against the engine. */
export const trySample = Effect.fnUntraced(function* (served: Served, { pressureSeconds = 590, rows = () => true, ...trying }: Trying = {}) {
  return yield* runSuite(yield* sampleSubject(served, trying), (state) => suiteChecks(state, pressureSeconds).filter(({ name }) => rows(name)))
}, Effect.scoped)
