import type { Calibration } from "./calibration.ts"
import type { EngineContract } from "./engineContract.ts"
import { type Estimate, estimateFit, type Misfit } from "./fit.ts"
import type { HostClass } from "./hostClass.ts"
import type { RepositoryFacts } from "./repository.ts"
import type { Runtime, ServingRequest, ServingSettings } from "./serving.ts"
import { sizeInWords } from "./sizeInWords.ts"
import { weightCommits } from "./weightCommits.ts"

/** A host class, and the engine that would serve on it. */
export interface Candidate {
  readonly engine: EngineContract
  readonly hostClass: HostClass
}

/** What is asked of each candidate. */
export interface Asked {
  readonly facts: RepositoryFacts
  readonly request: ServingRequest
  readonly calibrations?: ReadonlyArray<Calibration> | undefined
  /** GPUs that the organization may hold at once; null or absent: any number. */
  readonly gpuLimit?: number | null | undefined
}

/** What of the settings a candidate does not take with this model: a flag, or null for the context. */
interface LoadIssue {
  readonly flag: string | null
  readonly message: string
}

/** What came of a candidate: an estimate or why there is none, and what of the settings it does not take with this model, if any. */
export interface Attempt extends Candidate {
  readonly request: ServingRequest
  readonly result: Estimate | Misfit
  readonly issue: LoadIssue | null
  /** Why no engine can ever start there, however free the host class is, as a sentence: its files have no room on a node, or the organization may not hold as many GPUs. Null where one can. */
  readonly oversize: string | null
}

/** One that fits. */
export interface Success extends Attempt {
  readonly result: Estimate
}

export const isSuccess = (attempt: Attempt): attempt is Success => "fit" in attempt.result && attempt.issue === null && attempt.oversize === null

/** Micro-dollars an hour of all GPUs of a host class. */
export const hourlyPrice = (hostClass: HostClass): bigint => BigInt(hostClass.price_per_gpu_hour_micros) * BigInt(hostClass.gpu_count)

/** Cheapest first; those of one price by name. */
export const byPrice = (hostClasses: ReadonlyArray<HostClass>): ReadonlyArray<HostClass> =>
  hostClasses.toSorted((a, b) => {
    const [one, other] = [hourlyPrice(a), hourlyPrice(b)]
    return one < other ? -1 : one > other ? 1 : a.name < b.name ? -1 : 1
  })

/** The host classes that have the runtime that was asked for, or their own first one, with its engine. */
export const candidatesOf = (
  hostClasses: ReadonlyArray<HostClass>,
  engines: ReadonlyArray<EngineContract>,
  asked: Runtime | undefined
): ReadonlyArray<Candidate> =>
  hostClasses.flatMap((hostClass) => {
    const runtime = asked === undefined ? hostClass.runtimes[0].runtime : hostClass.runtimes.find((offered) => offered.runtime === asked)?.runtime
    const engine = engines.find((candidate) => candidate.runtime === runtime)
    return engine === undefined ? [] : [{ hostClass, engine }]
  })

/** All host classes with each of their runtimes. */
export const everyCandidate = (hostClasses: ReadonlyArray<HostClass>, engines: ReadonlyArray<EngineContract>): ReadonlyArray<Candidate> =>
  [...new Set(hostClasses.flatMap((hostClass) => hostClass.runtimes.map(({ runtime }) => runtime)))].flatMap((runtime) =>
    candidatesOf(hostClasses, engines, runtime)
  )

/** Why a candidate's engine would not use the chat template of the repository, as a sentence, or null. An adapter's own is given to it by itself. */
const nameIssue = ({ adapter, chat_template, config, repo }: RepositoryFacts, { engine, hostClass }: Candidate): string | null =>
  chat_template === null || (adapter !== undefined && adapter.template !== "base")
    ? null
    : (engine.nameIssue?.(adapter?.base.repo ?? repo, config, hostClass.simulated) ?? null)

/** Why a candidate's engine does not serve a model of an architecture that it knows, as a sentence; null where it does, and where only the quantization is unknown. */
export const modelIssue = (facts: RepositoryFacts, candidate: Candidate): string | null =>
  candidate.engine.modelIssue?.(facts.config, candidate.hostClass) ?? nameIssue(facts, candidate)

/** Whether a candidate's engine knows the model's architecture and quantization, has kernels for them on that card, and uses its chat template. */
export const knowsModel = (facts: RepositoryFacts, candidate: Candidate): boolean =>
  candidate.engine.architectures.has(facts.config.architecture) &&
  candidate.engine.quantizations.has(facts.config.quantization) &&
  modelIssue(facts, candidate) === null

/** Why a candidate's engine does not apply the repository's adapter, as a sentence; null where it does, and where there is none. */
export const adapterIssue = ({ adapter, config }: RepositoryFacts, { engine }: Candidate): string | null =>
  adapter === undefined ? null : engine.adapters === undefined ? `${engine.version} serves no adapters.` : engine.adapters.issue(adapter, config)

/** Why a candidate's engine cannot read the repository's tokenizer, as a sentence; null where it can. */
export const tokenizerIssue = ({ adapter, files }: RepositoryFacts, { engine, hostClass }: Candidate): string | null =>
  engine.tokenizerIssue?.(new Set((adapter?.base.files ?? files).map(({ path }) => path)), hostClass.simulated) ?? null

/** Why a candidate's engine cannot use the repository's chat template, as the rest of a sentence; null where it can, and where there is none. */
export const templateIssue = ({ chat_template: template }: RepositoryFacts, { engine, hostClass }: Candidate): string | null =>
  template === null ? null : (engine.templateIssue?.(template, hostClass.simulated) ?? null)

/** Whether a candidate's engine can serve the model, with its adapter where it has one. */
export const servesModel = (facts: RepositoryFacts, candidate: Candidate): boolean =>
  knowsModel(facts, candidate) && [adapterIssue, tokenizerIssue, templateIssue].every((issue) => issue(facts, candidate) === null)

/** Why a candidate's card does not read the KV cache that was asked for, or null. */
const cacheIssue = ({ config }: RepositoryFacts, { kv_cache_dtype = "auto" }: ServingRequest, { engine, hostClass }: Candidate): string | null =>
  engine.cacheIssue?.(config, kv_cache_dtype, hostClass) ?? null

/** A setting that a candidate does not take, as callers name it, and why, as a sentence. */
interface SettingIssue {
  /** The flag, or null for the KV cache's type. */
  readonly flag: string | null
  readonly message: string
  readonly remedy: string
}

/** What of the flags and the KV cache's type that were asked for a candidate does not take; null where it takes them. */
export const settingIssue = (facts: RepositoryFacts, request: ServingRequest, candidate: Candidate): SettingIssue | null => {
  const { engine_flags = {}, kv_cache_dtype = "auto" } = request
  const { engine } = candidate
  if (!engine.kvCacheDtypes.has(kv_cache_dtype)) {
    const message = `${engine.version} does not take the KV cache type ${kv_cache_dtype}; it takes ${[...engine.kvCacheDtypes].join(", ")}.`
    return { flag: null, message, remedy: "Leave kv_cache_dtype out, or set it to one of these." }
  }
  const unread = cacheIssue(facts, request, candidate)
  if (unread !== null) return { flag: null, message: unread, remedy: "Leave kv_cache_dtype out, or choose a host class with a newer card." }
  const issue = engine.flagIssue(engine_flags)
  return issue === null ? null : { ...issue, remedy: `Leave the engine flag ${issue.flag} out, or set it otherwise.` }
}

/** Whether a candidate takes the flags and the KV cache's type that were asked for. */
export const takesSettings = (facts: RepositoryFacts, request: ServingRequest, candidate: Candidate): boolean =>
  settingIssue(facts, request, candidate) === null

/** Tokens that the model was trained for before any scaling, which YaRN's factor multiplies. */
export const trainedContext = ({ config }: RepositoryFacts): number => Math.min(config.native_context, config.rope?.max_positions ?? config.native_context)

/** Tokens that the model is made for, with the YaRN settings that were asked for. */
export const contextLimit = (facts: RepositoryFacts, { yarn }: ServingRequest): number =>
  yarn === undefined ? facts.config.native_context : Math.floor(yarn.factor * (yarn.original_context ?? trainedContext(facts)))

/** The request without one of its engine flags. */
export const withoutFlag = (request: ServingRequest, flag: string): ServingRequest => {
  const { engine_flags: flags, ...rest } = request
  const kept = Object.fromEntries(Object.entries(flags ?? {}).filter(([name]) => name !== flag))
  return Object.keys(kept).length === 0 ? rest : { ...rest, engine_flags: kept }
}

/** The caller's flags, and those that are chosen beside them. */
const flagsOf = ({ facts, request }: Asked, { engine, hostClass }: Candidate): ServingSettings["engine_flags"] => {
  const given = request.engine_flags ?? {}
  const load = { config: facts.config, flags: given, card: hostClass, maxContext: request.max_context ?? contextLimit(facts, request) }
  const chosen = engine.chosenFlags?.(load, facts) ?? {}
  return Object.keys(chosen).length === 0 ? request.engine_flags : { ...chosen, ...given }
}

/** The complete settings of a candidate. */
export const settingsOf = (asked: Asked, candidate: Candidate, maxContext: number): ServingSettings => {
  const { request } = asked
  const engine_flags = flagsOf(asked, candidate)
  return {
    runtime: candidate.engine.runtime,
    host_class: candidate.hostClass.name,
    max_context: maxContext,
    kv_cache_dtype: request.kv_cache_dtype ?? "auto",
    ...(request.hold_seconds === undefined ? {} : { hold_seconds: request.hold_seconds }),
    ...(request.yarn === undefined ? {} : { yarn: request.yarn }),
    ...(engine_flags === undefined ? {} : { engine_flags })
  }
}

/** A number of GPUs for a message. */
export const gpus = (count: number) => `${count} GPU${count === 1 ? "" : "s"}`

const oversizeOf = ({ facts, gpuLimit = null }: Asked, { gpu_count: count, name, weights_limit_bytes: limit }: HostClass): string | null => {
  if (gpuLimit !== null && count > gpuLimit) return `The organization may hold ${gpus(gpuLimit)} at once, and an engine on ${name} takes ${count}.`
  const bytes = weightCommits(facts).reduce((sum, { files }) => files.reduce((total, { size }) => total + size, sum), 0)
  return limit === undefined || bytes <= limit
    ? null
    : `The files of ${facts.repo} are ${sizeInWords(bytes)} (${bytes} bytes), and a node of ${name} has room for a copy of ${sizeInWords(limit)} (${limit} bytes).`
}

/** A context that flags allow, and that the engine would still be reading when the trial stops waiting for it. */
const contextIssue = ({ name }: HostClass, longest: number, asked: number): LoadIssue => ({
  flag: null,
  message: `The engine that computes on ${name} reads at most ${longest} tokens of context of this model in the time that a trial waits for it; ${asked} were asked for.`
})

/** Works out whether a candidate serves what was asked. */
export const attempt = (asked: Asked, { engine, hostClass }: Candidate): Attempt => {
  const { facts, request } = asked
  const engineFlags = flagsOf(asked, { engine, hostClass })
  const cacheDtype = request.kv_cache_dtype ?? "auto"
  const load = { config: facts.config, flags: engineFlags ?? {}, card: hostClass, cacheDtype }
  const made = contextLimit(facts, request)
  // Where no context was asked for, one that the flags allow is chosen.
  const longest = engine.longestContext?.({ ...load, maxContext: request.max_context ?? made }) ?? made
  const chosen = request.max_context === undefined ? (engine.chosenContext?.({ ...load, maxContext: made }) ?? longest) : longest
  const limit = Math.min(made, longest, chosen)
  const result = estimateFit({
    config: facts.config,
    weightsBytes: facts.weights_bytes,
    weightParts: facts.weight_parts,
    engine,
    hostClass,
    kvCacheDtype: cacheDtype,
    engineFlags,
    maxContext: request.max_context,
    contextLimit: limit,
    adapters: facts.adapter === undefined ? undefined : engine.adapters?.buffers(facts.adapter, facts.config),
    calibrations: asked.calibrations
  })
  const maxContext = "fit" in result ? result.fit.max_context : (request.max_context ?? limit)
  const issue = engine.loadIssue?.({ ...load, maxContext }) ?? (maxContext > longest ? contextIssue(hostClass, longest, maxContext) : null)
  return { engine, hostClass, request, result, issue, oversize: oversizeOf(asked, hostClass) }
}

/** The first that fits, one that fits surely before one that is tight. */
export const bestOf = (attempts: ReadonlyArray<Attempt>): Success | undefined => {
  const successes = attempts.filter(isSuccess)
  return successes.find(({ result }) => result.fit.verdict === "fits") ?? successes[0]
}
