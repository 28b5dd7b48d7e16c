import { Effect } from "effect"
import { abortRefusal } from "./abortRefusal.ts"
import { countPrompt } from "./countPrompt.ts"
import type { EngineClient } from "./EngineClient.ts"
import { failed, type Outcome, refused } from "./Outcome.ts"
import { samplePrompt } from "./PromptSample.ts"
import { clientClosed, keyEnded, unavailable } from "./refusals.ts"
import type { Work } from "./Work.ts"

const byTokenizer = "the input was counted with the model's tokenizer"
const byLength = "the input is an estimate from the prompt's length"

/** Whether the engine has reported the tokens of the prompt. With several prompts, the engine reports them one at a time. */
export const isMetered = ({ admitted: { checked }, progress }: Work): boolean => checked.prompts === 1 && progress.hasUsage

/** The outcome after the caller left: it keeps the engine's usage, and no answer was delivered. */
export const withoutDelivery = (outcome: Outcome, { progress }: Work): Outcome =>
  outcome.state === "refused"
    ? refused(clientClosed)
    : {
        ...failed(clientClosed, "The caller disconnected.", progress),
        usage: outcome.usage,
        note: `The caller disconnected. ${outcome.note ?? "The usage is that of the whole answer."}`
      }

/** Estimates the output tokens of an aborted answer that was not streamed, from the time that the engine worked. */
const estimateOutput = ({ admitted: { checked, routedRequest } }: Work, millis: number, promptTokens: number): number => {
  const room = Math.max(0, routedRequest.route.maxModelLen - Math.floor(promptTokens / checked.prompts))
  return checked.choices * Math.min(routedRequest.estimateTokens(millis), checked.outputLimit ?? room, room)
}

/**
 * Determines the outcome of an aborted request. If the caller left before the engine reported its usage, the computed
 * tokens are counted here.
 */
export const makeAbortedOutcome = (engine: EngineClient["Service"]) =>
  Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
    const { admitted, progress } = work
    const { checked, requestAbort, id, routedRequest } = admitted
    const error = abortRefusal(requestAbort)
    if (error === unavailable) return failed(error, "The gateway was stopped.", progress)
    const what = error === keyEnded ? "The API key became invalid" : "The caller disconnected"
    if (isMetered(work) || checked.endpoint === "/v1/messages/count_tokens") return failed(error, `${what}.`, progress)
    const engineMillis = performance.now() - work.askedAt
    const sample = work.sample ?? samplePrompt(checked)
    const most = routedRequest.route.maxModelLen * checked.prompts
    const counted = yield* countPrompt(engine, { url: routedRequest.url, requestId: id, sample, most })
    const output = checked.stream ? "counts the received tokens" : "is an estimate from the time that the engine worked"
    const note = `${what} before the engine reported its usage: ${counted.byTokenizer ? byTokenizer : byLength}, the output ${output}.`
    const usage = checked.stream ? progress.usage : { ...progress.usage, output_tokens: estimateOutput(work, engineMillis, counted.tokens) }
    const known = usage.input_tokens + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0)
    return {
      ...failed(error, "", progress),
      usage: known >= counted.tokens ? usage : { ...usage, input_tokens: usage.input_tokens + counted.tokens - known },
      note
    }
  })
