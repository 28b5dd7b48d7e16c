import type { Calibration } from "./calibration.ts"
import {
  adapterIssue,
  attempt,
  bestOf,
  byPrice,
  type Candidate,
  candidatesOf,
  type EvaluationInput,
  everyCandidate,
  gpus,
  inPreference,
  isSuccess,
  knowsModel,
  servesModel,
  settingsOf,
  takesSettings,
  templateIssue,
  tokenizerIssue
} from "./candidates.ts"
import type { ModelCapabilities } from "./catalog.ts"
import { type ClassCapacities, type PreviewPlacement, placementOf } from "./classRoom.ts"
import type { EngineContract } from "./engineContract.ts"
import type { Estimate, Fit } from "./fit.ts"
import { fitRemedy } from "./fitRemedy.ts"
import type { HostClass } from "./hostClass.ts"
import { classesInWords, classOrder, isClassChoice } from "./hostClassChoice.ts"
import type { RefusalCode, RepositoryFacts } from "./repository.ts"
import { contextRefusal, loadRefusal, settingRefusal } from "./requestRefusals.ts"
import { revisionCapabilities } from "./revisionCapabilities.ts"
import type { ServingRequest, ServingSettings } from "./serving.ts"
import { hostClassNames, rangeProblem } from "./servingCheck.ts"
import { sizeInWords } from "./sizeInWords.ts"
import { leastContext } from "./trial.ts"
import { unsupported } from "./unsupported.ts"

export interface PreviewSource {
  readonly kind: "model_hub"
  readonly repo: string
  readonly ref: string | null
  readonly commit: string | null
}

/** The adapter of a preview, if its repository holds one: its rank and the pinned base. */
export interface PreviewAdapter {
  readonly rank: number
  readonly base: { readonly repo: string; readonly commit: string }
}

export interface DerivedPreview {
  readonly object: "deployment_preview"
  readonly kind: "derived"
  readonly source: PreviewSource
  /** Absent if the repository holds a complete model. */
  readonly adapter?: PreviewAdapter
  readonly architecture: string
  readonly license: string | null
  readonly dtype: string
  readonly quantization: string
  readonly weights_bytes: number
  /** Complete settings that can be pasted into a create request. */
  readonly serving: ServingSettings
  readonly fit: Fit
  /** Other host classes that fit, cheapest first. */
  readonly alternatives: ReadonlyArray<Fit>
  /** Which of these host classes have free GPUs now; absent if that is not known. */
  readonly placement?: PreviewPlacement
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
  /** Measurements of earlier starts. */
  readonly calibrations?: ReadonlyArray<Calibration> | undefined
  /** Maximum number of GPUs that the organization may hold at once; null or absent: no limit. */
  readonly gpuLimit?: number | null | undefined
  /** What is free now, for a preview; absent for a run, which also does without a listed class that is gone. */
  readonly capacities?: ClassCapacities | undefined
}

/** A way to serve the model on one of the host classes that a request allows. */
export interface ServingOption {
  readonly engine: EngineContract
  readonly serving: ServingSettings
  readonly estimate: Estimate
  readonly capabilities: ModelCapabilities
}

/** A preview and the components of its fit. */
export type Decision =
  | {
      readonly preview: DerivedPreview
      readonly estimate: Estimate
      /** All ways to serve it that the request leaves open, in order of preference: the chosen one only, unless the request lists classes or says `any`. */
      readonly options: ReadonlyArray<ServingOption>
    }
  | { readonly preview: RefusedPreview; readonly estimate: null }

/** Any host class and runtime that serve the model: a description and the settings; null if there is none. */
const servedElsewhere = (
  input: EvaluationInput,
  hostClasses: ReadonlyArray<HostClass>,
  engines: ReadonlyArray<EngineContract>
): { readonly where: string; readonly serving: ServingSettings } | null => {
  // Flags apply only to the runtime that they were written for.
  const { engine_flags: _, host_class: __, runtime: ___, ...open } = input.request
  const { max_context: ____, yarn: _____, ...plain } = open
  const candidates = everyCandidate(hostClasses, engines).filter((candidate) => servesModel(input.facts, candidate))
  const served = (request: ServingRequest): ServingSettings | null => {
    const other = { ...input, request }
    const able = candidates.filter((candidate) => takesSettings(input.facts, request, candidate) && contextRefusal(other, [candidate]) === null)
    const best = bestOf(able.map((candidate) => attempt(other, candidate)))
    return best === undefined ? null : settingsOf(other, best, best.result.fit.max_context)
  }
  const same = served(open)
  const serving = same ?? served(plain)
  if (serving === null) return null
  const context = same === null ? ` with max_context ${serving.max_context}${open.yarn === undefined ? "" : " and without yarn"}` : ""
  return { where: `${serving.runtime} on the host class ${serving.host_class}${context}`, serving }
}

/**
 * Settings that fit without the requested host class, and if necessary without the requested runtime and its flags;
 * null if nothing fits.
 */
const chosenInstead = (input: PreviewInput): ServingSettings | null => {
  const { host_class: _, ...anywhere } = input.request
  const { engine_flags: __, runtime: ___, ...open } = anywhere
  const isOffered = ({ runtime }: ServingRequest) => candidatesOf(input.hostClasses, input.engines, runtime).length > 0
  const request = isOffered(anywhere) ? anywhere : open
  if (!isOffered(request)) return null
  const { preview } = decideServing({ ...input, request })
  return preview.kind === "derived" ? preview.serving : null
}

/**
 * The host class that would serve with the fewest GPUs if the organization's limit were raised; null if no host class
 * has enough memory regardless of the limit.
 */
const gpusWithoutLimit = (input: EvaluationInput, attempts: ReadonlyArray<Candidate>) => {
  const able = attempts.map((candidate) => attempt({ ...input, gpuLimit: null }, candidate)).filter(isSuccess)
  const [least] = able.map(({ hostClass }) => hostClass).toSorted((a, b) => a.gpu_count - b.gpu_count)
  return least === undefined ? null : { name: least.name, count: least.gpu_count }
}

/**
 * Decides from a repository's facts whether and how it can be served. Candidates are the host classes with the
 * requested runtime (by default each one's first), cheapest first. Without `host_class` the first that fits is chosen.
 */
export const decideServing = (input: PreviewInput): Decision => {
  const { engines, facts, hostClasses, request } = input
  const evaluation: EvaluationInput = { facts, request, calibrations: input.calibrations, gpuLimit: input.gpuLimit }
  const source: PreviewSource = { kind: "model_hub", repo: facts.repo, ref: input.ref, commit: facts.commit }
  const refuse = (code: RefusalCode, message: string, remedy: string, serving: ServingSettings | null = null): Decision => ({
    preview: refusedPreview(source, code, message, remedy, serving),
    estimate: null
  })

  const range = rangeProblem(request)
  if (range !== null) {
    const context = range.param === "serving.max_context"
    return refuse(
      context ? "does_not_fit" : "context_too_long",
      range.message,
      context ? `Request max_context ${leastContext} or more.` : "Set a smaller factor."
    )
  }
  const sorted = byPrice(hostClasses)
  const order = classOrder(request)
  const requested = order === null ? sorted : order.flatMap((name) => sorted.find((hostClass) => hostClass.name === name) ?? [])
  const unknown = input.capacities === undefined ? undefined : order?.find((name) => !sorted.some((hostClass) => hostClass.name === name))
  if (requested.length === 0 || unknown !== undefined) {
    if (sorted.length === 0) return refuse("host_class_unknown", "No host class is configured.", "Ask the cluster's operator to create a HostClass.")
    return refuse(
      "host_class_unknown",
      `There is no host class ${unknown ?? classesInWords(order ?? [])}.`,
      `Choose one of: ${hostClassNames(sorted)}.`,
      chosenInstead(input)
    )
  }
  const offered = candidatesOf(requested, engines, request.runtime)
  if (offered.length === 0) {
    const remedy = "Omit `runtime`, or choose another host class."
    return refuse("host_class_unknown", `No host class offers the runtime ${request.runtime}.`, remedy, chosenInstead(input))
  }
  const registering = offered.filter((candidate) => knowsModel(facts, candidate))
  if (registering.length === 0) {
    const { message, remedy } = unsupported(facts, { offered, everywhere: everyCandidate(sorted, engines), engines })
    const other = servedElsewhere(evaluation, sorted, engines)
    const instead = other === null ? remedy : `Choose ${other.where}, which serves it.`
    return refuse("unsupported_architecture", message, instead, other?.serving ?? null)
  }
  const applying = registering.filter((candidate) => adapterIssue(facts, candidate) === null)
  if (applying.length === 0) {
    const issues = new Set(registering.flatMap((candidate) => adapterIssue(facts, candidate) ?? []))
    const merged = "name a repository with the adapter merged into its base."
    const other = servedElsewhere(evaluation, sorted, engines)
    const instead = other === null ? `N${merged.slice(1)}` : `Choose ${other.where}, which applies it, or ${merged}`
    return refuse("unsupported_format", `The adapter ${facts.repo} cannot be served: ${[...issues].join(" ")}`, instead, other?.serving ?? null)
  }
  const known = applying.filter((candidate) => tokenizerIssue(facts, candidate) === null)
  if (known.length === 0) {
    const issues = new Set(applying.flatMap((candidate) => tokenizerIssue(facts, candidate) ?? []))
    const other = servedElsewhere(evaluation, sorted, engines)
    const instead =
      other === null ? "Name a repository with a tokenizer.json." : `Choose ${other.where}, which reads it, or name a repository with a tokenizer.json.`
    return refuse("unsupported_format", `The tokenizer of ${facts.repo} cannot be read: ${[...issues].join(" ")}`, instead, other?.serving ?? null)
  }
  const reading = known.filter((candidate) => templateIssue(facts, candidate) === null)
  if (reading.length === 0) {
    const message = `The chat template of ${facts.repo} cannot be used: ${known.flatMap((candidate) => templateIssue(facts, candidate) ?? [])[0]}.`
    const other = servedElsewhere(evaluation, sorted, engines)
    const templateAdvice = "ame a repository or a revision with a complete chat template."
    return refuse(
      "unsupported_format",
      message,
      other === null ? `N${templateAdvice}` : `Choose ${other.where}, which uses it, or n${templateAdvice}`,
      other?.serving ?? null
    )
  }
  const taking = reading.filter((candidate) => takesSettings(facts, request, candidate))
  const setting = taking.length === 0 ? settingRefusal(evaluation, reading) : null
  if (setting !== null) return refuse("unsupported_format", setting.message, setting.remedy, setting.serving)
  const context = contextRefusal(evaluation, taking)
  if (context !== null) return refuse(context.reason.code, context.reason.message, context.remedy.message, context.remedy.serving)

  const attempts = taking.map((candidate) => attempt(evaluation, candidate))
  const load = loadRefusal(evaluation, attempts)
  if (load !== null) return refuse(load.reason.code, load.reason.message, load.remedy.message, load.remedy.serving)
  const preferred = inPreference(attempts, order !== null)
  const isFree = ({ hostClass }: Candidate) => (input.capacities?.get(hostClass.name)?.free_engines ?? 0) > 0
  const open = isClassChoice(request) ? preferred : preferred.slice(0, 1)
  const chosen = open.find(isFree) ?? open[0]
  if (chosen === undefined) {
    const alternatives = candidatesOf(
      sorted.filter((hostClass) => !requested.includes(hostClass)),
      engines,
      request.runtime
    )
    const fitting = fitRemedy(evaluation, taking, alternatives)
    const otherServing = fitting.serving === null ? servedElsewhere(evaluation, sorted, engines) : null
    const remedy =
      otherServing === null
        ? fitting
        : {
            message: `Choose ${otherServing.where}, which has room for it.`,
            serving: otherServing.serving
          }
    const needed = gpusWithoutLimit(evaluation, attempts)
    if (needed !== null && input.gpuLimit !== null && input.gpuLimit !== undefined) {
      const limit = gpus(input.gpuLimit)
      const raise = `sk the installation's administrators for a limit of at least ${gpus(needed.count)} (\`seatrial admin limits set\`)`
      const message = `The organization may hold ${limit} at once, and an engine on ${needed.name} takes ${needed.count}.`
      return remedy.serving === null
        ? refuse("does_not_fit", message, `A${raise}.`)
        : refuse("does_not_fit", message, `${remedy.message} Otherwise, a${raise}.`, remedy.serving)
    }
    const oversize = attempts.map((candidate) => candidate.oversize)
    if (oversize[0] !== undefined && oversize[0] !== null && oversize.every((problem) => problem !== null)) {
      return refuse("does_not_fit", oversize[0], remedy.message, remedy.serving)
    }
    // Only host classes that were evaluated: others may be larger but lack the runtime.
    const tried = attempts.filter((candidate) => candidate.oversize === null)
    const largest = Math.max(...tried.map(({ hostClass }) => hostClass.gpu_memory_bytes * hostClass.gpu_count))
    const which = request.runtime === undefined ? "any host class" : `any host class with the runtime ${request.runtime}`
    const where = order === null ? `${which} (the largest has ${sizeInWords(largest)})` : `${classesInWords(order)} (${sizeInWords(largest)})`
    const indivisible = attempts.map(({ result }) => ("fit" in result ? null : result.indivisible))
    const [why] = indivisible
    const message =
      why !== undefined && why !== null && indivisible.every((problem) => problem !== null)
        ? `${facts.repo} cannot be split over the GPUs of ${order === null ? "any host class" : classesInWords(order)}: ${why}.`
        : `${sizeInWords(facts.weights_bytes)} of weights${request.max_context === undefined ? "" : ` and ${request.max_context} tokens of context`} do not fit ${where}.`
    return refuse("does_not_fit", message, remedy.message, remedy.serving)
  }
  const { fit } = chosen.result
  const { adapter } = facts
  const optionOf = (success: (typeof open)[number]): ServingOption => {
    const serving = settingsOf(evaluation, success, success.result.fit.max_context)
    return { engine: success.engine, serving, estimate: success.result, capabilities: revisionCapabilities(success.engine, facts, serving) }
  }
  const { capabilities, serving } = optionOf(chosen)
  const alternatives = candidatesOf(sorted, engines, request.runtime)
    .filter((candidate) => candidate.hostClass !== chosen.hostClass && servesModel(facts, candidate) && takesSettings(facts, request, candidate))
    .map((candidate) => attempt(evaluation, candidate))
    .filter(isSuccess)
    .map(({ result }) => result.fit)
  return {
    estimate: chosen.result,
    options: open.map(optionOf),
    preview: {
      object: "deployment_preview",
      kind: "derived",
      source,
      ...(adapter === undefined ? {} : { adapter: { rank: adapter.rank, base: { repo: adapter.base.repo, commit: adapter.base.commit } } }),
      architecture: facts.config.architecture,
      license: facts.license,
      dtype: facts.config.dtype,
      quantization: facts.config.quantization,
      weights_bytes: facts.weights_bytes,
      serving,
      fit,
      alternatives,
      ...(input.capacities === undefined
        ? {}
        : { placement: placementOf({ fit, alternatives, open: open.map(({ result }) => result.fit), capacities: input.capacities }) }),
      capabilities
    }
  }
}

/** The preview without the components of its fit. */
export const derivePreview = (input: PreviewInput): Preview => decideServing(input).preview
