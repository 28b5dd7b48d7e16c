import { Commit, type RepositoryFacts, revisionCapabilities, type ServingSettings } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import { parseModelConfig } from "@seatrial/hub"
import { makeEngineClient, readRepository, runSuite, type SuiteSubject, suiteChecks } from "@seatrial/trial"
import { Effect, Result, Schema } from "effect"
import type { Files, Served } from "../mutants/serveSample.ts"
import { smolName } from "./smolFiles.ts"

const AnyObject = Schema.Record(Schema.String, Schema.Unknown)
const decodeJson = Schema.decodeUnknownSync(Schema.fromJsonString(AnyObject))
const decodeTemplate = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ chat_template: Schema.String })))

const textOf = (files: Files, name: string) => Buffer.from(files.get(name) ?? new Uint8Array()).toString("utf8")

/** What screening would read of the files. */
export const smolFacts = (files: Files): RepositoryFacts => {
  const size = files.get("model.safetensors")?.length ?? 0
  return {
    repo: smolName,
    ref: "main",
    commit: Commit.make("0123456789abcdef0123456789abcdef01234567"),
    license: "apache-2.0",
    gated: false,
    files: [...files].map(([path, bytes]) => ({ path, size: bytes.length, blob_id: "", sha256: null })),
    config: Result.getOrThrow(parseModelConfig(decodeJson(textOf(files, "config.json")), "F32")),
    weights_bytes: 4 * 134_515_008,
    parameters: size === 0 ? 0 : 134_515_008,
    chat_template: decodeTemplate(textOf(files, "tokenizer_config.json")).chat_template
  }
}

export interface OnEngine {
  readonly engine: EngineAdapter
  readonly settings: ServingSettings
}

export interface Trying {
  readonly reference?: SuiteSubject["reference"]
  /** The size by which the suite chooses how much it asks. Default: the model's own. */
  readonly parameters?: number
  readonly rows?: (name: string) => boolean
  /** How many times its usual time each check gets. */
  readonly patience?: number
}

/**
 * Tries an engine that should serve the model with the files `pinned`. It is told that the engine's files were verified, because the check of files alone would find
 * every spoiled copy.
 */
export const trySmol = Effect.fnUntraced(function* (
  served: Served,
  pinned: Files,
  { engine, settings }: OnEngine,
  { parameters, patience = 1, reference = null, rows = () => true }: Trying = {}
) {
  const facts = smolFacts(pinned)
  const subject: SuiteSubject = {
    client: yield* makeEngineClient({ url: served.url, timeout: "10 minutes", work: engine.wire.trialMetrics.work }),
    servedName: "m",
    maxContext: settings.max_context,
    engineVersion: served.version,
    vocabSize: facts.config.vocab_size,
    chat: true,
    card: "processor x1",
    salt: "",
    seed: 1,
    parameters: parameters ?? facts.parameters,
    slots: 256,
    offers: engine.offers(settings, false),
    metrics: engine.wire.trialMetrics,
    batchInvariant: false,
    capabilities: revisionCapabilities(engine, facts, settings),
    repository: yield* readRepository({
      facts,
      files: facts.files,
      commit: facts.commit,
      small: new Map([...pinned].filter(([name]) => name.endsWith(".json")))
    }),
    start: { verifiedFiles: pinned.size, readOnly: true, offline: true, localPath: true, ownImage: null },
    reference,
    earlier: [],
    cacheTokens: (metrics) => engine.measured({ metrics, log: "" }).kv_cache_tokens
  }
  const { report } = yield* runSuite(subject, (state) =>
    suiteChecks(state)
      .filter(({ name }) => rows(name))
      .map((check) => ({ ...check, limitSeconds: (about) => patience * check.limitSeconds(about) }))
  )
  yield* Effect.logInfo(report.checks.map(({ detail = "", name, passed }) => `${passed ? "passed" : "failed"} ${name}: ${detail}`).join("\n"))
  return { report, failed: report.checks.filter(({ passed }) => !passed).map(({ name }) => name) }
}, Effect.scoped)
