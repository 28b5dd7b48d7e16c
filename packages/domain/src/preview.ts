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

const priceOf = (hostClass: HostClass) => BigInt(hostClass.price_per_gpu_hour_micros) * BigInt(hostClass.gpu_count)

const contextLimit = (facts: RepositoryFacts, request: ServingRequest): number =>
  request.yarn === undefined ? facts.config.native_context : Math.floor(request.yarn.factor * (request.yarn.original_context ?? facts.config.native_context))

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 3 : 1)} GiB`

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
    const known = [...new Set(offered.flatMap(({ engine }) => [...engine.architectures]))].sort().join(", ")
    return refuse(
      "unsupported_architecture",
      `${architecture} with quantization ${quantization} is not supported by ${[...new Set(offered.map(({ engine }) => engine.version))].join(", ")}.`,
      `Choose a model of one of these architectures: ${known}.`
    )
  }
  const limit = contextLimit(facts, request)
  const settings = (runtime: Runtime, hostClass: string, maxContext: number): ServingSettings => ({
    runtime,
    host_class: hostClass,
    max_context: maxContext,
    kv_cache_dtype: request.kv_cache_dtype ?? "auto",
    ...(request.hold_seconds === undefined ? {} : { hold_seconds: request.hold_seconds }),
    ...(request.yarn === undefined ? {} : { yarn: request.yarn }),
    ...(request.engine_flags === undefined ? {} : { engine_flags: request.engine_flags })
  })
  const tryFit = ({ engine, hostClass }: (typeof able)[number], maxContext: number | null = request.max_context ?? null) =>
    fit({
      config: facts.config,
      weightsBytes: facts.weights_bytes,
      weightParts: facts.weight_parts,
      engine,
      hostClass,
      kvCacheDtype: request.kv_cache_dtype ?? "auto",
      ...(request.engine_flags === undefined ? {} : { engineFlags: request.engine_flags }),
      ...(maxContext === null ? {} : { maxContext }),
      contextLimit: limit
    })
  if (request.max_context !== undefined && request.max_context > limit) {
    const longest = able
      .map((candidate) => ({ ...candidate, result: tryFit(candidate, null) }))
      .flatMap(({ engine, hostClass, result }) => (isFit(result) ? [settings(engine.runtime, hostClass.name, result.max_context)] : []))
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
  const results = able.map((candidate) => ({ ...candidate, result: tryFit(candidate) }))
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
      return refuse(
        "does_not_fit",
        message,
        `It fits the host class ${other.hostClass.name}.`,
        settings(other.engine.runtime, other.hostClass.name, other.result.max_context)
      )
    }
    if (shorter !== undefined && !isFit(shorter.result)) {
      return refuse(
        "does_not_fit",
        message,
        `It fits with max_context ${shorter.result.longest_context}.`,
        settings(shorter.engine.runtime, shorter.hostClass.name, shorter.result.longest_context)
      )
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
    serving: settings(chosen.engine.runtime, chosen.hostClass.name, chosen.result.max_context),
    fit: chosen.result,
    alternatives: withEngine(sorted)
      .filter(({ engine, hostClass }) => hostClass !== chosen.hostClass && engine.architectures.has(architecture) && engine.quantizations.has(quantization))
      .map((candidate) => tryFit(candidate))
      .filter(isFit),
    capabilities: modelCapabilities(chosen.engine.served, facts)
  }
}
