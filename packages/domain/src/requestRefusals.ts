import {
  type Asked,
  type Attempt,
  attempt,
  bestOf,
  type Candidate,
  contextLimit,
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
 * The largest factor of YaRN that is proposed to somebody who asks for none, as far as makers go with models not trained on longer texts (Qwen2.5, Qwen3). More may
 * be asked for; most models write garbage then, which the trial finds and no preview can know.
 */
const proposedYarnFactor = 4

/** Why what was asked for is refused, and what to do about it. */
interface RequestRefusal {
  readonly reason: { readonly code: RefusalCode; readonly message: string }
  readonly remedy: { readonly message: string; readonly serving: ServingSettings | null }
}

/** Which setting none of the candidates takes that know the model, though others may that do not; and settings without it. */
export const settingRefusal = (asked: Asked, known: ReadonlyArray<Candidate>) => {
  const { facts, request } = asked
  const issues = known.flatMap((candidate) => settingIssue(facts, request, candidate) ?? [])
  const issue = issues.find(({ flag }) => flag === null) ?? issues[0]
  if (issue === undefined) return null
  const { kv_cache_dtype: _, ...open } = request
  const plain = issue.flag === null ? open : withoutFlag(request, issue.flag)
  const other = bestOf(known.filter((candidate) => takesSettings(facts, plain, candidate)).map((candidate) => attempt({ ...asked, request: plain }, candidate)))
  return { ...issue, serving: other === undefined ? null : settingsOf({ ...asked, request: plain }, other, other.result.fit.max_context) }
}

/** Why the context that was asked for is none that the model can have, or null. */
export const contextRefusal = (asked: Asked, able: ReadonlyArray<Candidate>): RequestRefusal | null => {
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
      .filter(({ result }) => result.fit.max_context >= leastContext)
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
  if (limit < leastContext) {
    const made = yarn === undefined ? `The model is made for ${limit} tokens` : `With these settings of yarn the model is made for ${limit} tokens`
    const message = `${made}; the checks of a deployment's trial need ${leastContext}.`
    const without = yarn === undefined ? null : longest(plain)
    return refusal(message, without === null ? "Choose a model with a longer context." : "Leave yarn out.", without)
  }
  const wanted = request.max_context
  if (wanted === undefined || wanted <= limit) return null
  const { native_context } = facts.config
  if (yarn !== undefined && wanted <= native_context) {
    const without = bestOf(able.map((candidate) => attempt({ ...asked, request: plain }, candidate)))
    const serving = without === undefined ? longest(plain) : settingsOf({ ...asked, request: plain }, without, wanted)
    return refusal(
      `With these settings of yarn the model is made for ${limit} tokens; ${wanted} were asked for. Without yarn it is made for ${native_context}.`,
      serving === null || serving.max_context === wanted ? "Leave yarn out." : `Leave yarn out, and ask for max_context ${serving.max_context}.`,
      serving
    )
  }
  const serving = longest(request)
  // In halves: a factor is a rough thing, and the model has to take the tokens that were asked for.
  const factor = Math.ceil((2 * wanted) / (yarn?.original_context ?? trained)) / 2
  const extended = { ...asked, request: { ...request, yarn: { ...yarn, factor } } }
  const extendable =
    factor <= (yarn === undefined ? proposedYarnFactor : maxYarnFactor) &&
    able.some((candidate) => candidate.engine.extendsContext?.(facts.config) !== false && attempt(extended, candidate).issue === null)
  const further = !extendable ? "" : yarn === undefined ? `, or extend it with yarn (factor ${factor})` : `, or set yarn.factor to ${factor}`
  return refusal(
    `${yarn === undefined ? "The" : "With these settings of yarn the"} model is made for ${limit} tokens; ${wanted} were asked for.`,
    `Ask for max_context ${serving === null ? `up to ${limit}` : serving.max_context}${further}.`,
    serving
  )
}

/** Which flag, or context, does not go with the model or the other flags wherever it would be served, and settings without it, or with a shorter context. */
export const loadRefusal = (asked: Asked, attempts: ReadonlyArray<Attempt>): RequestRefusal | null => {
  const issue = attempts.find((found) => found.issue !== null)?.issue
  if (issue === undefined || issue === null || attempts.some((found) => found.issue === null)) return null
  const { request } = asked
  const { max_context: wanted, ...open } = request
  const settings = (changed: ServingRequest) => {
    const other = { ...asked, request: changed }
    const found = bestOf(attempts.map((candidate) => attempt(other, candidate)))
    return found === undefined ? null : settingsOf(other, found, found.result.fit.max_context)
  }
  const shorter = wanted === undefined ? null : settings(open)
  if (issue.flag === null) {
    const remedy = shorter === null ? "Choose another host class." : `Ask for max_context ${shorter.max_context}, or choose another host class.`
    return { reason: { code: "context_too_long", message: issue.message }, remedy: { message: remedy, serving: shorter } }
  }
  const plain = settings(withoutFlag(request, issue.flag))
  const leave = `Leave the engine flag ${issue.flag} out, or set it otherwise.`
  return {
    reason: { code: "unsupported_format", message: issue.message },
    remedy: {
      message: shorter === null || shorter.max_context === wanted ? leave : `${leave.slice(0, -1)}; or ask for max_context ${shorter.max_context}.`,
      serving: plain ?? shorter
    }
  }
}
