import type { Calibration } from "./calibration.ts"
import type { EngineContract, EngineLoad, FlagIssue } from "./engineContract.ts"
import { type Estimate, estimateFit, type Misfit } from "./fit.ts"
import type { HostClass } from "./hostClass.ts"
import type { RepositoryFacts } from "./repository.ts"
import type { Runtime, ServingRequest, ServingSettings } from "./serving.ts"
import { sizeInWords } from "./sizeInWords.ts"
import { weightCommits } from "./weightCommits.ts"

/** A host class and the engine that would serve on it. */
export interface Candidate {
  readonly engine: EngineContract
  readonly hostClass: HostClass
}

/** The input that each candidate is evaluated against. */
export interface EvaluationInput {
  readonly facts: RepositoryFacts
  readonly request: ServingRequest
  readonly calibrations?: ReadonlyArray<Calibration> | undefined
  /** Maximum number of GPUs that the organization may hold at once; null or absent: no limit. */
  readonly gpuLimit?: number | null | undefined
}

/** A setting that a candidate does not accept for this model. */
type LoadIssue = ({ readonly setting: "engine_flags" } & FlagIssue) | { readonly setting: "max_context"; readonly message: string }

/**
 * Result of evaluating a candidate: an estimate or the reason for its absence, and the first setting that the candidate
 * does not accept, if any.
 */
export interface Attempt extends Candidate {
  readonly request: ServingRequest
  readonly result: Estimate | Misfit
  readonly issue: LoadIssue | null
  /**
   * Why no engine can start on this host class even if it is idle, as a sentence: the files exceed a node's space, or
   * the GPUs exceed the organization's limit. Null if an engine can start.
   */
  readonly oversize: string | null
}

/** A candidate on which the model fits. */
export interface Success extends Attempt {
  readonly result: Estimate
}

export const isSuccess = (attempt: Attempt): attempt is Success => "fit" in attempt.result && attempt.issue === null && attempt.oversize === null

/** Price of all GPUs of a host class, in micro-dollars per hour. */
export const hourlyPrice = (hostClass: HostClass): bigint => BigInt(hostClass.price_per_gpu_hour_micros) * BigInt(hostClass.gpu_count)

/** Cheapest first; host classes with the same price are sorted by name. */
export const byPrice = (hostClasses: ReadonlyArray<HostClass>): ReadonlyArray<HostClass> =>
  hostClasses.toSorted((a, b) => {
    const [one, other] = [hourlyPrice(a), hourlyPrice(b)]
    return one < other ? -1 : one > other ? 1 : a.name < b.name ? -1 : 1
  })

/**
 * The host classes that offer the requested runtime, each with its engine. Without a requested runtime, each host
 * class's first one is used.
 */
export const candidatesOf = (
  hostClasses: ReadonlyArray<HostClass>,
  engines: ReadonlyArray<EngineContract>,
  requestedRuntime: Runtime | undefined
): ReadonlyArray<Candidate> =>
  hostClasses.flatMap((hostClass) => {
    const runtime =
      requestedRuntime === undefined ? hostClass.runtimes[0].runtime : hostClass.runtimes.find((offered) => offered.runtime === requestedRuntime)?.runtime
    const engine = engines.find((candidate) => candidate.runtime === runtime)
    return engine === undefined ? [] : [{ hostClass, engine }]
  })

/** All host classes with each of their runtimes. */
export const everyCandidate = (hostClasses: ReadonlyArray<HostClass>, engines: ReadonlyArray<EngineContract>): ReadonlyArray<Candidate> =>
  [...new Set(hostClasses.flatMap((hostClass) => hostClass.runtimes.map(({ runtime }) => runtime)))].flatMap((runtime) =>
    candidatesOf(hostClasses, engines, runtime)
  )

/**
 * Why a candidate's engine would ignore the chat template of the repository, as a sentence, or null. An adapter's own
 * template is passed to the engine separately.
 */
const nameIssue = ({ adapter, chat_template, config, repo }: RepositoryFacts, { engine, hostClass }: Candidate): string | null =>
  chat_template === null || (adapter !== undefined && adapter.template !== "base")
    ? null
    : (engine.nameIssue?.(adapter?.base.repo ?? repo, config, hostClass.simulated) ?? null)

/**
 * Why a candidate's engine does not serve a model although it supports the architecture, as a sentence. Null if it
 * serves it, or if only the quantization is unsupported.
 */
export const modelIssue = (facts: RepositoryFacts, candidate: Candidate): string | null =>
  candidate.engine.modelIssue?.(facts.config, candidate.hostClass) ?? nameIssue(facts, candidate)

/**
 * Whether a candidate's engine supports the model's architecture and quantization on that card and uses its chat
 * template.
 */
export const knowsModel = (facts: RepositoryFacts, candidate: Candidate): boolean =>
  candidate.engine.architectures.has(facts.config.architecture) &&
  candidate.engine.quantizations.has(facts.config.quantization) &&
  modelIssue(facts, candidate) === null

/**
 * Why a candidate's engine does not apply the repository's adapter, as a sentence; null if it does or if there is none.
 */
export const adapterIssue = ({ adapter, config }: RepositoryFacts, { engine }: Candidate): string | null =>
  adapter === undefined ? null : engine.adapters === undefined ? `${engine.version} serves no adapters.` : engine.adapters.issue(adapter, config)

/** Why a candidate's engine cannot read the repository's tokenizer, as a sentence; null if it can. */
export const tokenizerIssue = ({ adapter, files }: RepositoryFacts, { engine, hostClass }: Candidate): string | null =>
  engine.tokenizerIssue?.(new Set((adapter?.base.files ?? files).map(({ path }) => path)), hostClass.simulated) ?? null

/**
 * Why a candidate's engine cannot use the repository's chat template, as the rest of a sentence; null if it can or if
 * there is none.
 */
export const templateIssue = ({ chat_template: template }: RepositoryFacts, { engine, hostClass }: Candidate): string | null =>
  template === null ? null : (engine.templateIssue?.(template, hostClass.simulated) ?? null)

/** Whether a candidate's engine can serve the model and its adapter, if any. */
export const servesModel = (facts: RepositoryFacts, candidate: Candidate): boolean =>
  knowsModel(facts, candidate) && [adapterIssue, tokenizerIssue, templateIssue].every((issue) => issue(facts, candidate) === null)

/** Why a candidate's card does not support the requested KV cache type, or null. */
const cacheIssue = ({ config }: RepositoryFacts, { kv_cache_dtype = "auto" }: ServingRequest, { engine, hostClass }: Candidate): string | null =>
  engine.cacheIssue?.(config, kv_cache_dtype, hostClass) ?? null

/** A setting that a candidate does not accept, with the reason and what to do, each as a sentence. */
type SettingIssue = (({ readonly setting: "engine_flags" } & FlagIssue) | { readonly setting: "kv_cache_dtype"; readonly message: string }) & {
  readonly remedy: string
}

/** The first of the requested flags and the KV cache type that a candidate does not accept; null if it accepts all. */
export const settingIssue = (facts: RepositoryFacts, request: ServingRequest, candidate: Candidate): SettingIssue | null => {
  const { engine_flags = {}, kv_cache_dtype = "auto" } = request
  const { engine } = candidate
  if (!engine.kvCacheDtypes.has(kv_cache_dtype)) {
    const message = `${engine.version} does not take the KV cache type ${kv_cache_dtype}; it takes ${[...engine.kvCacheDtypes].join(", ")}.`
    return { setting: "kv_cache_dtype", message, remedy: "Omit the KV cache type, or set it to one of these." }
  }
  const unread = cacheIssue(facts, request, candidate)
  if (unread !== null) return { setting: "kv_cache_dtype", message: unread, remedy: "Omit the KV cache type, or choose a host class with a newer card." }
  const issue = engine.flagIssue(engine_flags)
  return issue === null ? null : { setting: "engine_flags", ...issue, remedy: `Omit the engine flag ${issue.flag}, or change its value.` }
}

/** Whether a candidate accepts the requested flags and KV cache type. */
export const takesSettings = (facts: RepositoryFacts, request: ServingRequest, candidate: Candidate): boolean =>
  settingIssue(facts, request, candidate) === null

/** Context length in tokens that the model was trained for before any scaling. YaRN's factor multiplies it. */
export const trainedContext = ({ config }: RepositoryFacts): number => Math.min(config.native_context, config.rope?.max_positions ?? config.native_context)

/** Maximum context length in tokens, with the requested YaRN settings. */
export const contextLimit = (facts: RepositoryFacts, { yarn }: ServingRequest): number =>
  yarn === undefined ? facts.config.native_context : Math.floor(yarn.factor * (yarn.original_context ?? trainedContext(facts)))

/** The request without one of its engine flags. */
export const withoutFlag = (request: ServingRequest, flag: string): ServingRequest => {
  const { engine_flags: flags, ...rest } = request
  const remaining = Object.fromEntries(Object.entries(flags ?? {}).filter(([name]) => name !== flag))
  return Object.keys(remaining).length === 0 ? rest : { ...rest, engine_flags: remaining }
}

/** The caller's flags and the flags that Seatrial chooses. */
const flagsOf = ({ facts, request }: EvaluationInput, { engine, hostClass }: Candidate): ServingSettings["engine_flags"] => {
  const requestFlags = request.engine_flags ?? {}
  const load = { config: facts.config, flags: requestFlags, card: hostClass, maxContext: request.max_context ?? contextLimit(facts, request) }
  const chosen = engine.chosenFlags?.(load, facts) ?? {}
  return Object.keys(chosen).length === 0 ? request.engine_flags : { ...chosen, ...requestFlags }
}

/** The complete settings of a candidate. */
export const settingsOf = (input: EvaluationInput, candidate: Candidate, maxContext: number): ServingSettings => {
  const { engine_flags: _requested, host_class: _choice, kv_cache_dtype = "auto", max_context: _limit, runtime: _runtime, ...otherFields } = input.request
  const engine_flags = flagsOf(input, candidate)
  return {
    runtime: candidate.engine.runtime,
    host_class: candidate.hostClass.name,
    max_context: maxContext,
    kv_cache_dtype,
    ...otherFields,
    ...(engine_flags === undefined ? {} : { engine_flags })
  }
}

/** Formats a number of GPUs for a message. */
export const gpus = (count: number) => `${count} GPU${count === 1 ? "" : "s"}`

const oversizeOf = ({ facts, gpuLimit = null }: EvaluationInput, { gpu_count: count, name, weights_limit_bytes: limit }: HostClass): string | null => {
  if (gpuLimit !== null && count > gpuLimit) return `The organization may hold ${gpus(gpuLimit)} at once, and an engine on ${name} takes ${count}.`
  const bytes = weightCommits(facts).reduce((sum, { files }) => files.reduce((total, { size }) => total + size, sum), 0)
  return limit === undefined || bytes <= limit
    ? null
    : `The files of ${facts.repo} are ${sizeInWords(bytes)} (${bytes} bytes), but a node of ${name} has room for only ${sizeInWords(limit)} (${limit} bytes).`
}

/** The flags allow the context, but the engine needs more time to read it than the trial waits. */
const contextIssue = ({ name }: HostClass, longest: number, requested: number): LoadIssue => ({
  setting: "max_context",
  message: `On ${name}, the engine can process at most ${longest} tokens of context within the trial's time limit. The request has ${requested}.`
})

/**
 * The longest context in tokens that the engine can read in time, and the one to plan for. Without a requested context,
 * the flags allow it.
 */
const contextLimits = (engine: EngineContract, load: Omit<EngineLoad, "maxContext">, requested: number | undefined, modelLimit: number) => {
  const longest = engine.longestContext?.({ ...load, maxContext: requested ?? modelLimit }) ?? modelLimit
  const chosen = requested === undefined ? (engine.chosenContext?.({ ...load, maxContext: modelLimit }) ?? longest) : longest
  return { longest, limit: Math.min(modelLimit, longest, chosen) }
}

/** Evaluates whether a candidate can serve the request. */
export const attempt = (input: EvaluationInput, { engine, hostClass }: Candidate): Attempt => {
  const { facts, request } = input
  const engineFlags = flagsOf(input, { engine, hostClass })
  const cacheDtype = request.kv_cache_dtype ?? "auto"
  const load = { config: facts.config, flags: engineFlags ?? {}, card: hostClass, cacheDtype }
  const { limit, longest } = contextLimits(engine, load, request.max_context, contextLimit(facts, request))
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
    calibrations: input.calibrations
  })
  const maxContext = "fit" in result ? result.fit.max_context : (request.max_context ?? limit)
  const flag = engine.loadIssue?.({ ...load, maxContext }) ?? null
  const context = maxContext > longest ? contextIssue(hostClass, longest, maxContext) : null
  const issue = flag === null ? context : ({ setting: "engine_flags", ...flag } as const)
  return { engine, hostClass, request, result, issue, oversize: oversizeOf(input, hostClass) }
}

/** Those that fit: in the order in which the request lists their classes, else first those that fit surely. */
export const inPreference = (attempts: ReadonlyArray<Attempt>, listed: boolean): ReadonlyArray<Success> => {
  const successes = attempts.filter(isSuccess)
  if (listed) return successes
  const isSure = ({ result }: Success) => result.fit.verdict === "fits"
  return [...successes.filter(isSure), ...successes.filter((success) => !isSure(success))]
}

/** The first candidate that fits. Candidates with the verdict `fits` come before `tight`. */
export const bestOf = (attempts: ReadonlyArray<Attempt>): Success | undefined => {
  const successes = attempts.filter(isSuccess)
  return successes.find(({ result }) => result.fit.verdict === "fits") ?? successes[0]
}
