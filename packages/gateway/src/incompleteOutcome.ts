import { pathTraits, type Usage } from "@seatrial/domain"
import { Effect } from "effect"
import { countPrompt } from "./countPrompt.ts"
import type { EngineClient } from "./EngineClient.ts"
import { failed, type Outcome } from "./Outcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import type { Refusal } from "./refusals.ts"
import type { Work } from "./Work.ts"

const byTokenizer = "the input was counted with the model's tokenizer"
const byLength = "the input is an estimate from the prompt's length"

/**
 * Whether the engine has reported the tokens of the prompt. With several prompts, the engine reports them one at a
 * time.
 */
export const isMetered = ({ admitted: { checked }, progress }: Work): boolean => checked.prompts === 1 && progress.hasUsage

/** Estimates the output tokens of an incomplete answer that was not streamed, from the time that the engine worked. */
const estimateOutput = ({ admitted: { checked, routedRequest } }: Work, millis: number, promptTokens: number): number => {
  const room = Math.max(0, routedRequest.route.maxModelLen - Math.floor(promptTokens / checked.prompts))
  return checked.choices * Math.min(routedRequest.estimateTokens(millis, promptTokens), checked.outputLimit ?? room, room)
}

/** Whether the engine computed tokens that it did not report. */
const mustEstimate = (work: Work, hasWorked: boolean): boolean =>
  (hasWorked || work.progress.contentFrames > 0) && !isMetered(work) && pathTraits[work.admitted.checked.endpoint].countsFor === null

/** The usage with at least this many tokens of input. */
const withInput = (usage: Usage, tokens: number): Usage => {
  const known = usage.input_tokens + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0)
  return known >= tokens ? usage : { ...usage, input_tokens: usage.input_tokens + tokens - known }
}

/**
 * Determines the outcome of a request whose answer is incomplete. If the engine reported no usage, the computed tokens
 * are counted here. `what` is the reason, without a period. `workedUntil` is the `performance.now()` at which the
 * engine last worked. Call it after the engine was stopped.
 */
export const makeIncompleteOutcome = (engine: EngineClient["Service"]) =>
  Effect.fnUntraced(function* (work: Work, error: Refusal, what: string, workedUntil = performance.now()): Effect.fn.Return<Outcome> {
    const { admitted, progress, sentAt } = work
    const { checked, id, routedRequest } = admitted
    if (sentAt === null) return failed(error, `${what}. No engine got the request.`, progress)
    if (!mustEstimate(work, workedUntil >= sentAt)) return failed(error, `${what}.`, progress)
    const sample = work.sample ?? samplePrompt(checked)
    const most = routedRequest.route.maxModelLen * checked.prompts
    const counted = yield* countPrompt(engine, { url: routedRequest.url, requestId: id, sample, most })
    const output = checked.stream ? "counts the received tokens" : "is an estimate from the time that the engine worked"
    const note = `${what} before the engine reported its usage: ${counted.byTokenizer ? byTokenizer : byLength}, the output ${output}.`
    const usage = checked.stream ? progress.usage : { ...progress.usage, output_tokens: estimateOutput(work, workedUntil - sentAt, counted.tokens) }
    return { ...failed(error, "", progress), usage: withInput(usage, counted.tokens), note }
  })

export type IncompleteOutcome = ReturnType<typeof makeIncompleteOutcome>
