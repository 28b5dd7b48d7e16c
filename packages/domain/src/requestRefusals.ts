import {
  type Attempt,
  attempt,
  bestOf,
  type Candidate,
  contextLimit,
  type EvaluationInput,
  isSuccess,
  settingIssue,
  settingsOf,
  takesSettings,
  trainedContext,
  withoutFlag
} from "./candidates.ts"
import type { RefusalCode } from "./repository.ts"
import { maxYarnFactor, type ServingRequest, type ServingSettings } from "./serving.ts"
import { leastContext } from "./trial.ts"

/**
 * The largest YaRN factor that Seatrial proposes without a request for it: the largest that model makers recommend for
 * models not trained on longer texts (Qwen2.5, Qwen3). Callers may request more. Most models then produce garbage,
 * which the trial detects and a preview cannot.
 */
const proposedYarnFactor = 4

/** Why the request is refused, and what to do about it. */
export interface RequestRefusal {
  readonly reason: { readonly code: RefusalCode; readonly message: string }
  readonly remedy: { readonly message: string; readonly serving: ServingSettings | null }
}

/**
 * The setting that no candidate that supports the model accepts, although other candidates may; and settings without
 * it.
 */
export const settingRefusal = (input: EvaluationInput, known: ReadonlyArray<Candidate>) => {
  const { facts, request } = input
  const issues = known.flatMap((candidate) => settingIssue(facts, request, candidate) ?? [])
  const issue = issues.find(({ setting }) => setting === "kv_cache_dtype") ?? issues[0]
  if (issue === undefined) return null
  const { kv_cache_dtype: _, ...open } = request
  const plain = issue.setting === "kv_cache_dtype" ? open : withoutFlag(request, issue.flag)
  const other = bestOf(known.filter((candidate) => takesSettings(facts, plain, candidate)).map((candidate) => attempt({ ...input, request: plain }, candidate)))
  return { ...issue, serving: other === undefined ? null : settingsOf({ ...input, request: plain }, other, other.result.fit.max_context) }
}

/** The request, and the candidates that could serve it with another context. */
interface ContextQuestion {
  readonly input: EvaluationInput
  readonly able: ReadonlyArray<Candidate>
}

const contextTooLong = (message: string, remedy: string, serving: ServingSettings | null): RequestRefusal => ({
  reason: { code: "context_too_long", message },
  remedy: { message: remedy, serving }
})

const withoutYarn = ({ yarn: _, ...plain }: ServingRequest): ServingRequest => plain

/** The settings with the longest context that fits a changed request. */
const longestSettings = ({ able, input }: ContextQuestion, changed: ServingRequest): ServingSettings | null => {
  const { max_context: _, ...open } = changed
  const question = { ...input, request: open }
  const best = able
    .map((candidate) => attempt(question, candidate))
    .filter(isSuccess)
    .filter(({ result }) => result.fit.max_context >= leastContext)
    .toSorted((a, b) => b.result.fit.max_context - a.result.fit.max_context)[0]
  return best === undefined ? null : settingsOf(question, best, best.result.fit.max_context)
}

/** YaRN cannot extend the model's context, or not from the requested length. */
const yarnRefusal = (question: ContextQuestion): RequestRefusal | null => {
  const { able, input } = question
  const { facts, request } = input
  const { yarn } = request
  if (yarn === undefined) return null
  if (able.every(({ engine }) => engine.extendsContext?.(facts.config) === false)) {
    const why = "YaRN does not support its position encoding"
    return contextTooLong(`yarn cannot extend the context of ${facts.repo}: ${why}.`, "Omit yarn.", longestSettings(question, withoutYarn(request)))
  }
  const trained = trainedContext(facts)
  if (yarn.original_context === undefined || yarn.original_context <= trained) return null
  return contextTooLong(
    `The original context for yarn is ${yarn.original_context}; the model was trained for ${trained} tokens.`,
    `Omit the original context, or set it to at most ${trained}.`,
    longestSettings(question, { ...request, yarn: { factor: yarn.factor } })
  )
}

/** The model's context is too short for a trial. */
const trialRefusal = (question: ContextQuestion, limit: number): RequestRefusal | null => {
  if (limit >= leastContext) return null
  const { request } = question.input
  const subject = request.yarn === undefined ? `The model supports up to ${limit} tokens` : `With these yarn settings, the model supports up to ${limit} tokens`
  const message = `${subject}, but the trial needs ${leastContext}.`
  const serving = request.yarn === undefined ? null : longestSettings(question, withoutYarn(request))
  return contextTooLong(message, serving === null ? "Choose a model with a longer context." : "Omit yarn.", serving)
}

/** The requested context is possible, but not with the requested YaRN settings. */
const yarnSettingsRefusal = (question: ContextQuestion, limit: number, requested: number): RequestRefusal | null => {
  const { able, input } = question
  const { native_context } = input.facts.config
  if (input.request.yarn === undefined || requested > native_context) return null
  const plain = { ...input, request: withoutYarn(input.request) }
  const best = bestOf(able.map((candidate) => attempt(plain, candidate)))
  const serving = best === undefined ? longestSettings(question, plain.request) : settingsOf(plain, best, requested)
  return contextTooLong(
    `With these yarn settings, the model supports up to ${limit} tokens; ${requested} were requested. Without yarn, it supports up to ${native_context}.`,
    serving === null || serving.max_context === requested ? "Omit yarn." : `Omit yarn and request a context of ${serving.max_context} tokens.`,
    serving
  )
}

/** How YaRN would reach the requested context, as a part of a sentence; empty if it cannot. */
const extensionAdvice = ({ able, input }: ContextQuestion, requested: number): string => {
  const { facts, request } = input
  const { yarn } = request
  // Round up to halves: the factor is approximate, but must reach the requested number of tokens.
  const factor = Math.ceil((2 * requested) / (yarn?.original_context ?? trainedContext(facts))) / 2
  if (factor > (yarn === undefined ? proposedYarnFactor : maxYarnFactor)) return ""
  const extended = { ...input, request: { ...request, yarn: { ...yarn, factor } } }
  const isExtendable = (candidate: Candidate) => candidate.engine.extendsContext?.(facts.config) !== false && attempt(extended, candidate).issue === null
  if (!able.some(isExtendable)) return ""
  return yarn === undefined ? `, or extend the model's context with yarn (factor ${factor})` : `, or set the factor of yarn to ${factor}`
}

/** The requested context is longer than the model's. */
const lengthRefusal = (question: ContextQuestion, limit: number, requested: number): RequestRefusal => {
  const { request } = question.input
  const serving = longestSettings(question, request)
  return contextTooLong(
    `${request.yarn === undefined ? "The" : "With these yarn settings, the"} model supports up to ${limit} tokens; ${requested} were requested.`,
    `Request a context of ${serving === null ? `at most ${limit}` : serving.max_context} tokens${extensionAdvice(question, requested)}.`,
    serving
  )
}

/** Why the requested context is impossible for the model, or null. */
export const contextRefusal = (input: EvaluationInput, able: ReadonlyArray<Candidate>): RequestRefusal | null => {
  const question: ContextQuestion = { input, able }
  const limit = contextLimit(input.facts, input.request)
  const refusal = yarnRefusal(question) ?? trialRefusal(question, limit)
  if (refusal !== null) return refusal
  const requested = input.request.max_context
  if (requested === undefined || requested <= limit) return null
  return yarnSettingsRefusal(question, limit, requested) ?? lengthRefusal(question, limit, requested)
}

/**
 * The flag or context that conflicts with the model or other flags on every candidate, and settings without it or with
 * a shorter context.
 */
export const loadRefusal = (input: EvaluationInput, attempts: ReadonlyArray<Attempt>): RequestRefusal | null => {
  const issue = attempts.find((candidate) => candidate.issue !== null)?.issue
  if (issue === undefined || issue === null || attempts.some((candidate) => candidate.issue === null)) return null
  const { request } = input
  const { max_context: wanted, ...open } = request
  const settings = (changed: ServingRequest) => {
    const other = { ...input, request: changed }
    const best = bestOf(attempts.map((candidate) => attempt(other, candidate)))
    return best === undefined ? null : settingsOf(other, best, best.result.fit.max_context)
  }
  const shorter = wanted === undefined ? null : settings(open)
  if (issue.setting === "max_context") {
    const remedy = shorter === null ? "Choose another host class." : `Request a context of ${shorter.max_context} tokens, or choose another host class.`
    return { reason: { code: "context_too_long", message: issue.message }, remedy: { message: remedy, serving: shorter } }
  }
  const plain = settings(withoutFlag(request, issue.flag))
  const leave = `Omit the engine flag ${issue.flag}, or change its value.`
  return {
    reason: { code: "unsupported_format", message: issue.message },
    remedy: {
      message: shorter === null || shorter.max_context === wanted ? leave : `${leave.slice(0, -1)}, or request a context of ${shorter.max_context} tokens.`,
      serving: plain ?? shorter
    }
  }
}
