import type { Calibration } from "./calibration.ts"
import {
  type Attempt,
  attempt,
  byPrice,
  type Candidate,
  candidatesOf,
  inPreference,
  isSuccess,
  type Success,
  servesModel,
  settingsOf,
  takesSettings
} from "./candidates.ts"
import type { ModelCapabilities } from "./catalog.ts"
import { type ClassCapacities, placementOf } from "./classRoom.ts"
import type { EngineContract } from "./engineContract.ts"
import type { Estimate } from "./fit.ts"
import type { HostClass } from "./hostClass.ts"
import { classesInWords, classOrder, isClassChoice } from "./hostClassChoice.ts"
import { noFitRefusal } from "./noFitRefusal.ts"
import { type DerivedPreview, type Preview, type PreviewSource, type RefusedPreview, refusedPreview } from "./previewResult.ts"
import type { RepositoryFacts } from "./repository.ts"
import { contextRefusal, loadRefusal, type RequestRefusal } from "./requestRefusals.ts"
import { revisionCapabilities } from "./revisionCapabilities.ts"
import type { ServingRequest, ServingSettings } from "./serving.ts"
import { hostClassNames, rangeProblem } from "./servingCheck.ts"
import type { ServingQuestion, ServingRefusal } from "./servingQuestion.ts"
import { narrowCandidates } from "./servingRequirements.ts"
import { leastContext } from "./trial.ts"

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
  /** The free GPUs now, for a preview; absent for a run, which also works without a listed class that is gone. */
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
      /**
       * All ways to serve it that the request leaves open, in order of preference: the chosen one only, unless the
       * request lists classes or says `any`.
       */
      readonly options: ReadonlyArray<ServingOption>
    }
  | { readonly preview: RefusedPreview; readonly estimate: null }

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

const rangeRefusal = (request: ServingRequest): ServingRefusal | null => {
  const range = rangeProblem(request)
  if (range === null) return null
  const isContext = range.param === "serving.max_context"
  return {
    code: isContext ? "does_not_fit" : "context_too_long",
    message: range.message,
    remedy: isContext ? `Request a context of ${leastContext} tokens or more.` : "Set a smaller factor.",
    serving: null
  }
}

/** Refuses a request without an existing host class, and in a preview also one with any unknown host class. */
const hostClassRefusal = (input: PreviewInput, { hostClasses, order, requested }: ServingQuestion): ServingRefusal | null => {
  const unknown = input.capacities === undefined ? undefined : order?.find((name) => !hostClasses.some((hostClass) => hostClass.name === name))
  if (requested.length > 0 && unknown === undefined) return null
  if (hostClasses.length === 0) {
    const remedy = "Ask the cluster administrator to create a HostClass."
    return { code: "host_class_unknown", message: "No host class is configured.", remedy, serving: null }
  }
  return {
    code: "host_class_unknown",
    message: `There is no host class ${unknown ?? classesInWords(order ?? [])}.`,
    remedy: `Choose one of: ${hostClassNames(hostClasses)}.`,
    serving: chosenInstead(input)
  }
}

const runtimeRefusal = (input: PreviewInput, offered: ReadonlyArray<Candidate>): ServingRefusal | null =>
  offered.length > 0
    ? null
    : {
        code: "host_class_unknown",
        message: `No host class offers the runtime ${input.request.runtime}.`,
        remedy: "Omit `runtime`, or choose another host class.",
        serving: chosenInstead(input)
      }

const servingRefusal = (refusal: RequestRefusal | null): ServingRefusal | null =>
  refusal === null ? null : { ...refusal.reason, remedy: refusal.remedy.message, serving: refusal.remedy.serving }

const questionOf = ({ calibrations, engines, facts, gpuLimit, hostClasses, request }: PreviewInput): ServingQuestion => {
  const sorted = byPrice(hostClasses)
  const order = classOrder(request)
  const requested = order === null ? sorted : order.flatMap((name) => sorted.find((hostClass) => hostClass.name === name) ?? [])
  return { evaluation: { facts, request, calibrations, gpuLimit }, hostClasses: sorted, engines, order, requested }
}

/** The candidates that fit and are left open by the request, in order of preference, and the chosen one of them. */
const choose = (input: PreviewInput, question: ServingQuestion, attempts: ReadonlyArray<Attempt>) => {
  const preferred = inPreference(attempts, question.order !== null)
  const isFree = ({ hostClass }: Candidate) => (input.capacities?.get(hostClass.name)?.free_engines ?? 0) > 0
  const open = isClassChoice(input.request) ? preferred : preferred.slice(0, 1)
  return { chosen: open.find(isFree) ?? open[0], open }
}

const optionOf = ({ evaluation }: ServingQuestion, success: Success): ServingOption => {
  const serving = settingsOf(evaluation, success, success.result.fit.max_context)
  return { engine: success.engine, serving, estimate: success.result, capabilities: revisionCapabilities(success.engine, evaluation.facts, serving) }
}

/** The fits on the host classes other than the chosen one, cheapest first. */
const alternativeFits = ({ engines, evaluation, hostClasses }: ServingQuestion, chosen: Success) => {
  const { facts, request } = evaluation
  return candidatesOf(hostClasses, engines, request.runtime)
    .filter((candidate) => candidate.hostClass !== chosen.hostClass && servesModel(facts, candidate) && takesSettings(facts, request, candidate))
    .map((candidate) => attempt(evaluation, candidate))
    .filter(isSuccess)
    .map(({ result }) => result.fit)
}

const derivedDecision = (
  input: PreviewInput,
  question: ServingQuestion,
  source: PreviewSource,
  { chosen, open }: { readonly chosen: Success; readonly open: ReadonlyArray<Success> }
): Decision => {
  const { facts } = input
  const { fit } = chosen.result
  const { adapter } = facts
  const { capabilities, serving } = optionOf(question, chosen)
  const alternatives = alternativeFits(question, chosen)
  return {
    estimate: chosen.result,
    options: open.map((success) => optionOf(question, success)),
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

/**
 * Decides from a repository's facts whether and how it can be served. Candidates are the host classes with the
 * requested runtime (by default each one's first), cheapest first. Without `host_class` the first that fits is chosen.
 */
export const decideServing = (input: PreviewInput): Decision => {
  const { facts, request } = input
  const source: PreviewSource = { kind: "model_hub", repo: facts.repo, ref: input.ref, commit: facts.commit }
  const refuse = ({ code, message, remedy, serving }: ServingRefusal): Decision => ({
    preview: refusedPreview(source, code, message, remedy, serving),
    estimate: null
  })

  const question = questionOf(input)
  const { engines, evaluation, requested } = question
  const requestRefusal = rangeRefusal(request) ?? hostClassRefusal(input, question)
  if (requestRefusal !== null) return refuse(requestRefusal)
  const offered = candidatesOf(requested, engines, request.runtime)
  const offerRefusal = runtimeRefusal(input, offered)
  if (offerRefusal !== null) return refuse(offerRefusal)
  const narrowed = narrowCandidates(question, offered)
  if ("refusal" in narrowed) return refuse(narrowed.refusal)
  const { candidates } = narrowed
  const contextProblem = servingRefusal(contextRefusal(evaluation, candidates))
  if (contextProblem !== null) return refuse(contextProblem)
  const attempts = candidates.map((candidate) => attempt(evaluation, candidate))
  const loadProblem = servingRefusal(loadRefusal(evaluation, attempts))
  if (loadProblem !== null) return refuse(loadProblem)
  const { chosen, open } = choose(input, question, attempts)
  if (chosen === undefined) return refuse(noFitRefusal(question, candidates, attempts))
  return derivedDecision(input, question, source, { chosen, open })
}

/** The preview without the components of its fit. */
export const derivePreview = (input: PreviewInput): Preview => decideServing(input).preview
