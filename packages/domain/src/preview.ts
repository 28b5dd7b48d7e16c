import { modelCapabilities } from "./capabilities.ts"
import type { ModelCapabilities } from "./catalog.ts"
import type { EngineContract } from "./engineContract.ts"
import { type Fit, fit, isFit } from "./fit.ts"
import type { HostClass } from "./hostClass.ts"
import type { RefusalCode, RepositoryFacts } from "./repository.ts"
import type { Runtime, ServingRequest, ServingSettings } from "./serving.ts"

export interface PreviewSource {
  readonly kind: "model_hub"
  readonly repo: string
  readonly ref: string | null
  readonly commit: string | null
}

export interface DerivedPreview {
  readonly object: "deployment_preview"
  readonly kind: "derived"
  readonly source: PreviewSource
  readonly architecture: string
  readonly license: string | null
  readonly dtype: string
  readonly quantization: string
  readonly weights_bytes: number
  /** Complete: can be pasted into a create. */
  readonly serving: ServingSettings
  readonly fit: Fit
  /** Other host classes that fit, cheapest first. */
  readonly alternatives: ReadonlyArray<Fit>
  readonly capabilities: ModelCapabilities
}

export interface RefusedPreview {
  readonly object: "deployment_preview"
  readonly kind: "refused"
  readonly source: PreviewSource
  readonly reason: { readonly code: RefusalCode; readonly message: string }
  readonly remedy: { readonly message: string; readonly serving: ServingSettings | null }
}

export type Preview = DerivedPreview | RefusedPreview

export const refusedPreview = (
  source: PreviewSource,
  code: RefusalCode,
  message: string,
  remedy: string,
  serving: ServingSettings | null = null
): RefusedPreview => ({ object: "deployment_preview", kind: "refused", source, reason: { code, message }, remedy: { message: remedy, serving } })

export interface PreviewInput {
  readonly facts: RepositoryFacts
  /** The ref as the caller wrote it. */
  readonly ref: string | null
  readonly request: ServingRequest
  readonly hostClasses: ReadonlyArray<HostClass>
  readonly engines: ReadonlyArray<EngineContract>
}

/** A host class, and the engine that would serve on it. */
interface Candidate {
  readonly engine: EngineContract
  readonly hostClass: HostClass
}

const priceOf = (hostClass: HostClass) => BigInt(hostClass.price_per_gpu_hour_micros) * BigInt(hostClass.gpu_count)

const contextLimit = (facts: RepositoryFacts, request: ServingRequest): number =>
  request.yarn === undefined ? facts.config.native_context : Math.floor(request.yarn.factor * (request.yarn.original_context ?? facts.config.native_context))

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 3 : 1)} GiB`

const sharedPrefix = (one: string, other: string): number => {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/** Most architectures that a refusal names. */
const namedArchitectures = 12

/** The architectures that an engine knows, those first whose names begin like the one that was asked for. */
const knownArchitectures = (engines: ReadonlyArray<EngineContract>, architecture: string): string => {
  const known = [...new Set(engines.flatMap((engine) => [...engine.architectures]))].sort()
  const near = known.toSorted((a, b) => sharedPrefix(b, architecture) - sharedPrefix(a, architecture)).slice(0, namedArchitectures)
  return known.length > near.length ? `${near.join(", ")} and ${known.length - near.length} others` : near.join(", ")
}

/**
 * Decides from a repository's facts whether and how it can be served. Candidates are the host classes that have the asked runtime (their first one where
 * none is asked), cheapest first; without `host_class` the first that fits is chosen.
 */
export const derivePreview = (input: PreviewInput): Preview => {
  const { engines, facts, hostClasses, request } = input
  const source: PreviewSource = { kind: "model_hub", repo: facts.repo, ref: input.ref, commit: facts.commit }
  const refuse = (code: RefusalCode, message: string, remedy: string, serving: ServingSettings | null = null) =>
    refusedPreview(source, code, message, remedy, serving)

  const sorted = [...hostClasses].sort((a, b) => (priceOf(a) < priceOf(b) ? -1 : priceOf(a) > priceOf(b) ? 1 : a.name < b.name ? -1 : 1))
  const named = request.host_class === undefined ? sorted : sorted.filter((hostClass) => hostClass.name === request.host_class)
  const names = sorted.map((hostClass) => hostClass.name).join(", ")
  if (named.length === 0) {
    return request.host_class === undefined
      ? refuse("host_class_unknown", "No host class is configured.", "Ask the cluster's operator to create a HostClass.")
      : refuse("host_class_unknown", `There is no host class ${request.host_class}.`, `Choose one of: ${names}.`)
  }
  const runtimeOf = (hostClass: HostClass): Runtime | undefined =>
    request.runtime === undefined ? hostClass.runtimes[0].runtime : hostClass.runtimes.find(({ runtime }) => runtime === request.runtime)?.runtime
  const withEngine = (classes: ReadonlyArray<HostClass>) =>
    classes.flatMap((hostClass) => {
      const runtime = runtimeOf(hostClass)
      const engine = engines.find((candidate) => candidate.runtime === runtime)
      return engine === undefined ? [] : [{ hostClass, engine }]
    })
  const offered = withEngine(named)
  if (offered.length === 0) {
    return refuse("host_class_unknown", `No host class offers the runtime ${request.runtime}.`, "Leave `runtime` out, or choose another host class.")
  }
  const { architecture, quantization } = facts.config
  const able = offered.filter(({ engine }) => engine.architectures.has(architecture) && engine.quantizations.has(quantization))
  if (able.length === 0) {
    const purpose = offered.map(({ engine }) => engine.otherPurpose?.(architecture) ?? null).find((said) => said !== null)
    const registering = offered.filter(({ engine }) => engine.architectures.has(architecture))
    const versions = [...new Set(offered.map(({ engine }) => engine.version))].join(", ")
    if (purpose !== undefined) {
      return refuse(
        "unsupported_architecture",
        `${architecture} ${purpose}; only models that answer in text are served.`,
        "Choose a model that generates text."
      )
    }
    return refuse(
      "unsupported_architecture",
      `${architecture} with quantization ${quantization} is not supported by ${versions}.`,
      registering.length === 0
        ? `Choose a model of one of these architectures: ${knownArchitectures(
            offered.map(({ engine }) => engine),
            architecture
          )}.`
        : `Choose a checkpoint of one of these quantizations: ${[...new Set(registering.flatMap(({ engine }) => [...engine.quantizations]))].sort().join(", ")}.`
    )
  }
  const limit = contextLimit(facts, request)
  const given = request.engine_flags ?? {}
  /** The caller's flags, and those that are chosen beside them. */
  const flagsOf = ({ engine, hostClass }: Candidate): ServingSettings["engine_flags"] => {
    const load = { config: facts.config, flags: given, card: hostClass, maxContext: request.max_context ?? limit }
    const chosen = engine.chosenFlags?.(load, facts.chat_template) ?? {}
    return Object.keys(chosen).length === 0 ? request.engine_flags : { ...chosen, ...given }
  }
  const settings = (candidate: Candidate, maxContext: number): ServingSettings => {
    const engine_flags = flagsOf(candidate)
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
  const tryFit = ({ engine, hostClass }: Candidate, maxContext: number | null = request.max_context ?? null) =>
    fit({
      config: facts.config,
      weightsBytes: facts.weights_bytes,
      weightParts: facts.weight_parts,
      engine,
      hostClass,
      kvCacheDtype: request.kv_cache_dtype ?? "auto",
      engineFlags: flagsOf({ engine, hostClass }),
      ...(maxContext === null ? {} : { maxContext }),
      contextLimit: limit
    })
  if (request.max_context !== undefined && request.max_context > limit) {
    const longest = able
      .map((candidate) => ({ ...candidate, result: tryFit(candidate, null) }))
      .flatMap(({ engine, hostClass, result }) => (isFit(result) ? [settings({ engine, hostClass }, result.max_context)] : []))
      .sort((a, b) => b.max_context - a.max_context)[0]
    return refuse(
      "context_too_long",
      `The model is made for ${limit} tokens; ${request.max_context} were asked for.`,
      longest === undefined
        ? `Ask for max_context up to ${limit}, or extend it with yarn.`
        : `Ask for max_context ${longest.max_context}, or extend it with yarn.`,
      longest ?? null
    )
  }
  const [first] = able
  if (request.yarn !== undefined && first !== undefined && able.every(({ engine }) => engine.extendsContext?.(facts.config) === false)) {
    const { yarn: _, ...rest } = settings(first, Math.min(request.max_context ?? facts.config.native_context, facts.config.native_context))
    return refuse(
      "context_too_long",
      `yarn cannot extend the context of ${facts.repo}: its way to encode positions is none that it knows.`,
      "Leave yarn out.",
      rest
    )
  }
  const tried = able.map((candidate) => ({ ...candidate, result: tryFit(candidate) }))
  const issues = tried.map(({ engine, hostClass, result }) => {
    const load = { config: facts.config, flags: given, card: hostClass, maxContext: isFit(result) ? result.max_context : (request.max_context ?? limit) }
    return engine.loadIssue?.({ ...load, flags: flagsOf({ engine, hostClass }) ?? {} }) ?? null
  })
  const results = tried.filter((_, index) => issues[index] === null)
  const issue = issues.find((found) => found !== null)
  if (results.length === 0 && issue !== undefined && issue !== null) {
    return refuse("unsupported_format", issue.message, `Leave the engine flag ${issue.flag} out, or set it otherwise.`)
  }
  const chosen = results.find(({ result }) => isFit(result) && result.verdict === "fits") ?? results.find(({ result }) => isFit(result))
  if (chosen === undefined || !isFit(chosen.result)) {
    const others = withEngine(sorted.filter((hostClass) => !named.includes(hostClass))).filter(({ engine }) => engine.architectures.has(architecture))
    const other = others.map((candidate) => ({ ...candidate, result: tryFit(candidate) })).find(({ result }) => isFit(result))
    const shorter = results.find(({ result }) => !isFit(result) && result.longest_context > 0)
    const largest = Math.max(...named.map((hostClass) => hostClass.gpu_memory_bytes * hostClass.gpu_count))
    const message = `${gib(facts.weights_bytes)} of weights${request.max_context === undefined ? "" : ` and ${request.max_context} tokens of context`} do not fit ${
      request.host_class === undefined ? `any host class (the largest has ${gib(largest)})` : `${request.host_class} (${gib(largest)})`
    }.`
    if (other !== undefined && isFit(other.result)) {
      return refuse("does_not_fit", message, `It fits the host class ${other.hostClass.name}.`, settings(other, other.result.max_context))
    }
    if (shorter !== undefined && !isFit(shorter.result)) {
      return refuse("does_not_fit", message, `It fits with max_context ${shorter.result.longest_context}.`, settings(shorter, shorter.result.longest_context))
    }
    return refuse("does_not_fit", message, "Choose a smaller or a quantized model, or ask the cluster's operator for a larger host class.")
  }
  return {
    object: "deployment_preview",
    kind: "derived",
    source,
    architecture,
    license: facts.license,
    dtype: facts.config.dtype,
    quantization,
    weights_bytes: facts.weights_bytes,
    serving: settings(chosen, chosen.result.max_context),
    fit: chosen.result,
    alternatives: withEngine(sorted)
      .filter(({ engine, hostClass }) => hostClass !== chosen.hostClass && engine.architectures.has(architecture) && engine.quantizations.has(quantization))
      .map((candidate) => tryFit(candidate))
      .filter(isFit),
    capabilities: modelCapabilities(chosen.engine.served, facts)
  }
}
