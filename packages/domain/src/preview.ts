import type { Calibration } from "./calibration.ts"
import {
  type Asked,
  adapterIssue,
  attempt,
  bestOf,
  byPrice,
  type Candidate,
  candidatesOf,
  contextLimit,
  gib,
  isSuccess,
  knowsModel,
  servesModel,
  settingIssue,
  settingsOf,
  takesSettings,
  trainedContext
} from "./candidates.ts"
import { modelCapabilities } from "./capabilities.ts"
import type { ModelCapabilities } from "./catalog.ts"
import type { EngineContract } from "./engineContract.ts"
import type { Estimate, Fit } from "./fit.ts"
import { fitRemedy } from "./fitRemedy.ts"
import type { HostClass } from "./hostClass.ts"
import type { RefusalCode, RepositoryFacts } from "./repository.ts"
import type { ServingRequest, ServingSettings } from "./serving.ts"
import { unsupported } from "./unsupported.ts"

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
  /** What earlier starts measured. */
  readonly calibrations?: ReadonlyArray<Calibration> | undefined
}

/** A preview, and where the bytes of its fit go. */
export type Decision = { readonly preview: DerivedPreview; readonly estimate: Estimate } | { readonly preview: RefusedPreview; readonly estimate: null }

/** Which setting none of the candidates takes that know the model, though others may that do not; and settings without it. */
const settingRefusal = (asked: Asked, known: ReadonlyArray<Candidate>) => {
  const { facts, request } = asked
  const issues = known.flatMap((candidate) => settingIssue(facts, request, candidate) ?? [])
  const issue = issues.find(({ flag }) => flag === null) ?? issues[0]
  if (issue === undefined) return null
  const { engine_flags: flags = {}, kv_cache_dtype: _, ...open } = request
  const rest = Object.fromEntries(Object.entries(flags).filter(([flag]) => flag !== issue.flag))
  const plain: ServingRequest = { ...(issue.flag === null ? open : request), ...(request.engine_flags === undefined ? {} : { engine_flags: rest }) }
  const other = bestOf(known.filter((candidate) => takesSettings(facts, plain, candidate)).map((candidate) => attempt({ ...asked, request: plain }, candidate)))
  return { ...issue, serving: other === undefined ? null : settingsOf({ ...asked, request: plain }, other, other.result.fit.max_context) }
}

/** Why the context that was asked for is none that the model can have, or null. */
const contextRefusal = (asked: Asked, able: ReadonlyArray<Candidate>): Pick<RefusedPreview, "reason" | "remedy"> | null => {
  const { facts, request } = asked
  const refusal = (message: string, remedy: string, serving: ServingSettings | null) => ({
    reason: { code: "context_too_long" as const, message },
    remedy: { message: remedy, serving }
  })
  /** The settings of the longest context that fits, asked for in another way. */
  const longest = (changed: ServingRequest): ServingSettings | null => {
    const { max_context: _, ...open } = changed
    const other = { ...asked, request: open }
    const found = able
      .map((candidate) => attempt(other, candidate))
      .filter(isSuccess)
      .toSorted((a, b) => b.result.fit.max_context - a.result.fit.max_context)[0]
    return found === undefined ? null : settingsOf(other, found, found.result.fit.max_context)
  }
  const trained = trainedContext(facts)
  const { yarn, ...plain } = request
  if (yarn !== undefined) {
    if (able.every(({ engine }) => engine.extendsContext?.(facts.config) === false)) {
      const why = "its way to encode positions is none that it knows"
      return refusal(`yarn cannot extend the context of ${facts.repo}: ${why}.`, "Leave yarn out.", longest(plain))
    }
    if (yarn.original_context !== undefined && yarn.original_context > trained) {
      return refusal(
        `yarn.original_context is ${yarn.original_context}; the model was trained for ${trained} tokens.`,
        `Leave yarn.original_context out, or set it to at most ${trained}.`,
        longest({ ...request, yarn: { factor: yarn.factor } })
      )
    }
  }
  const limit = contextLimit(facts, request)
  if (request.max_context === undefined || request.max_context <= limit) return null
  const serving = longest(request)
  return refusal(
    `The model is made for ${limit} tokens; ${request.max_context} were asked for.`,
    `Ask for max_context ${serving === null ? `up to ${limit}` : serving.max_context}, or extend it with yarn.`,
    serving
  )
}

/** Where else the model is served, on any host class by any of its runtimes, with the settings for it; null where nowhere is. */
const servedElsewhere = (
  asked: Asked,
  hostClasses: ReadonlyArray<HostClass>,
  engines: ReadonlyArray<EngineContract>
): { readonly serving: ServingSettings } | null => {
  // Flags are those of the runtime that they were meant for.
  const { engine_flags: _, host_class: __, runtime: ___, ...open } = asked.request
  const other = { ...asked, request: open }
  const runtimes = [...new Set(hostClasses.flatMap((hostClass) => hostClass.runtimes.map(({ runtime }) => runtime)))]
  const candidates = runtimes.flatMap((runtime) => candidatesOf(hostClasses, engines, runtime))
  const found = bestOf(
    candidates
      .filter((candidate) => servesModel(asked.facts, candidate) && takesSettings(asked.facts, open, candidate))
      .map((candidate) => attempt(other, candidate))
  )
  return found === undefined ? null : { serving: settingsOf(other, found, found.result.fit.max_context) }
}

/**
 * Decides from a repository's facts whether and how it can be served. Candidates are the host classes that have the asked runtime (their first one where
 * none is asked), cheapest first; without `host_class` the first that fits is chosen.
 */
export const decideServing = (input: PreviewInput): Decision => {
  const { engines, facts, hostClasses, request } = input
  const asked: Asked = { facts, request, calibrations: input.calibrations }
  const source: PreviewSource = { kind: "model_hub", repo: facts.repo, ref: input.ref, commit: facts.commit }
  const refuse = (code: RefusalCode, message: string, remedy: string, serving: ServingSettings | null = null): Decision => ({
    preview: refusedPreview(source, code, message, remedy, serving),
    estimate: null
  })

  const sorted = byPrice(hostClasses)
  const named = request.host_class === undefined ? sorted : sorted.filter((hostClass) => hostClass.name === request.host_class)
  if (named.length === 0) {
    return request.host_class === undefined
      ? refuse("host_class_unknown", "No host class is configured.", "Ask the cluster's operator to create a HostClass.")
      : refuse("host_class_unknown", `There is no host class ${request.host_class}.`, `Choose one of: ${sorted.map((hostClass) => hostClass.name).join(", ")}.`)
  }
  const offered = candidatesOf(named, engines, request.runtime)
  if (offered.length === 0) {
    return refuse("host_class_unknown", `No host class offers the runtime ${request.runtime}.`, "Leave `runtime` out, or choose another host class.")
  }
  const registering = offered.filter((candidate) => knowsModel(facts, candidate))
  if (registering.length === 0) {
    const { message, remedy } = unsupported(facts, offered)
    const other = servedElsewhere(asked, sorted, engines)
    const instead = other === null ? remedy : `Choose ${other.serving.runtime} on the host class ${other.serving.host_class}, which serves it.`
    return refuse("unsupported_architecture", message, instead, other?.serving ?? null)
  }
  const known = registering.filter((candidate) => adapterIssue(facts, candidate) === null)
  if (known.length === 0) {
    const issues = new Set(registering.flatMap((candidate) => adapterIssue(facts, candidate) ?? []))
    const merged = "name a repository with the adapter merged into its base."
    const other = servedElsewhere(asked, sorted, engines)
    const instead =
      other === null ? `N${merged.slice(1)}` : `Choose ${other.serving.runtime} on the host class ${other.serving.host_class}, which applies it, or ${merged}`
    return refuse("unsupported_format", `The adapter ${facts.repo} cannot be served: ${[...issues].join(" ")}`, instead, other?.serving ?? null)
  }
  const taking = known.filter((candidate) => takesSettings(facts, request, candidate))
  const setting = taking.length === 0 ? settingRefusal(asked, known) : null
  if (setting !== null) return refuse("unsupported_format", setting.message, setting.remedy, setting.serving)
  const context = contextRefusal(asked, taking)
  if (context !== null) return refuse(context.reason.code, context.reason.message, context.remedy.message, context.remedy.serving)

  const attempts = taking.map((candidate) => attempt(asked, candidate))
  const issue = attempts.find((found) => found.issue !== null)?.issue
  if (issue !== undefined && issue !== null && attempts.every((found) => found.issue !== null)) {
    return refuse("unsupported_format", issue.message, `Leave the engine flag ${issue.flag} out, or set it otherwise.`)
  }
  const chosen = bestOf(attempts)
  if (chosen === undefined) {
    const others = candidatesOf(
      sorted.filter((hostClass) => !named.includes(hostClass)),
      engines,
      request.runtime
    )
    const remedy = fitRemedy(asked, taking, others)
    const oversize = attempts.map((found) => found.oversize)
    if (oversize[0] !== undefined && oversize[0] !== null && oversize.every((problem) => problem !== null))
      return refuse("does_not_fit", oversize[0], remedy.message, remedy.serving)
    const largest = Math.max(...named.map((hostClass) => hostClass.gpu_memory_bytes * hostClass.gpu_count))
    const where = request.host_class === undefined ? `any host class (the largest has ${gib(largest)})` : `${request.host_class} (${gib(largest)})`
    const indivisible = attempts.map(({ result }) => ("fit" in result ? null : result.indivisible))
    const [why] = indivisible
    const message =
      why !== undefined && why !== null && indivisible.every((problem) => problem !== null)
        ? `${facts.repo} cannot be split over the GPUs of ${request.host_class ?? "any host class"}: ${why}.`
        : `${gib(facts.weights_bytes)} of weights${request.max_context === undefined ? "" : ` and ${request.max_context} tokens of context`} do not fit ${where}.`
    return refuse("does_not_fit", message, remedy.message, remedy.serving)
  }
  const { fit } = chosen.result
  return {
    estimate: chosen.result,
    preview: {
      object: "deployment_preview",
      kind: "derived",
      source,
      architecture: facts.config.architecture,
      license: facts.license,
      dtype: facts.config.dtype,
      quantization: facts.config.quantization,
      weights_bytes: facts.weights_bytes,
      serving: settingsOf(asked, chosen, fit.max_context),
      fit,
      alternatives: candidatesOf(sorted, engines, request.runtime)
        .filter((candidate) => candidate.hostClass !== chosen.hostClass && servesModel(facts, candidate) && takesSettings(facts, request, candidate))
        .map((candidate) => attempt(asked, candidate))
        .filter(isSuccess)
        .map(({ result }) => result.fit),
      capabilities: modelCapabilities(chosen.engine.served, facts)
    }
  }
}

/** What a preview answers. */
export const derivePreview = (input: PreviewInput): Preview => decideServing(input).preview
