import type { ServerResponse } from "node:http"
import type { RequestId } from "@seatrial/domain"
import type { Caller } from "@seatrial/store"
import { Effect } from "effect"
import { abortRefusal } from "./abortRefusal.ts"
import { countPrompt } from "./countPrompt.ts"
import type { Dialect, StreamReader } from "./dialects/Dialect.ts"
import type { EngineClient } from "./EngineClient.ts"
import type { EventStream } from "./EventStream.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { readEngineError, roomLeft } from "./engineError.ts"
import type { GatewaySettings } from "./GatewayConfig.ts"
import { holdEngine } from "./holdEngine.ts"
import { failed, noUsage, type Outcome, refused } from "./Outcome.ts"
import type { Observation } from "./observability/Observer.ts"
import { routingMetrics } from "./observability/RoutingMetrics.ts"
import type { PendingInsert } from "./PendingInsert.ts"
import type { Progress } from "./Progress.ts"
import { type PromptSample, samplePrompt } from "./PromptSample.ts"
import type { ReceiptDigests } from "./ReceiptDigests.ts"
import type { RequestAbort } from "./RequestAbort.ts"
import { readWhole } from "./readWhole.ts"
import { clientClosed, engineFailed, engineTimeout, keyEnded, modelOverloaded, unavailable } from "./refusals.ts"
import { relay } from "./relay.ts"
import type { RoutedRequest } from "./routing/RoutedRequest.ts"
import { cutAnswer } from "./vocabulary/answerLimit.ts"
import type { CheckedRequest } from "./vocabulary/checkRequest.ts"
import { restoreModelName } from "./vocabulary/restoreModelName.ts"

export interface Admitted {
  readonly id: RequestId
  readonly caller: Caller
  readonly checked: CheckedRequest
  /** Its way to an engine, which it has entered. */
  readonly routedRequest: RoutedRequest
  readonly response: ServerResponse
  /** Aborted when there is nobody to answer any more; the reason is `gone` for a caller who left. */
  readonly requestAbort: RequestAbort
  /** `performance.now()` at the request's first byte. */
  readonly startedAt: number
  /** As the caller sent it. */
  readonly traceparent: string | undefined
  /** Null unless the caller asked for digests. */
  readonly digests: ReceiptDigests | null
  /** Lets go of the body: no engine is asked any more. */
  readonly letGo: () => void
}

/** A request under way. */
export interface Work {
  readonly admitted: Admitted
  readonly dialect: Dialect
  readonly stream: EventStream | null
  /** Of the attempt under way: each engine's stream is read anew. */
  reader: StreamReader
  readonly progress: Progress
  readonly pendingInsert: PendingInsert
  readonly observation: Observation
  /** Whether it was asked again for an answer that its prompt leaves room for. */
  cut: boolean
  /** `performance.now()` when the engine was asked. */
  askedAt: number
  /** What is kept of the prompt while its engine has not reported its tokens. */
  sample: PromptSample | null
}

/** That the request is to be sent once more: to another engine where there is one, else `outcome` holds; or, cut, to the same. */
type Again = { readonly retry: "lost" | "stale" | "full"; readonly outcome: Outcome } | { readonly retry: "cut" }

/** Bytes of the largest answer that is not streamed. */
const maxAnswer = 16 * 1024 * 1024

/** An error of the engine before any frame; only one of the engine itself may have cost work, and tells of the engine. `status` is the answer's. */
const turnedAway = (said: string, status: number, work: Work): Outcome | Again => {
  const { checked, routedRequest } = work.admitted
  const room = work.cut ? null : roomLeft(said)
  const shorter = room === null ? null : cutAnswer(checked.engineBody, room)
  if (shorter !== null) {
    work.cut = true
    routingMetrics.retried(routedRequest.route.model, "cut")
    checked.engineBody = shorter
    return { retry: "cut" }
  }
  const error = readEngineError(said, status, { endpoint: checked.endpoint, maxModelLen: routedRequest.route.maxModelLen })
  if (error === modelOverloaded) return { retry: "full", outcome: refused(error) }
  if (error !== engineFailed) return refused(error)
  routedRequest.failed()
  return failed(error, "The engine failed.", work.progress)
}

const noUsageNote = "The engine told no usage: the output counts what was delivered, the input is unknown."

const byTokenizer = "the input was counted with the model's tokenizer"
const byLength = "the input is an estimate from the prompt's length"

/** Whether the tokens of the prompt are known: of several prompts the engine reports one at a time. */
const isMetered = ({ admitted: { checked }, progress }: Work): boolean => checked.prompts === 1 && progress.hasUsage

/** What the caller left of an outcome: the usage is the engine's, and no answer was delivered. */
const undelivered = (outcome: Outcome, { progress }: Work): Outcome =>
  outcome.state === "refused"
    ? refused(clientClosed)
    : {
        ...failed(clientClosed, "The caller left.", progress),
        usage: outcome.usage,
        note: `The caller left. ${outcome.note ?? "The usage is that of the whole answer."}`
      }

/** Tokens that an engine wrote of an answer that is not streamed until it was aborted: only the time shows how many. */
const estimateOutput = ({ admitted: { checked, routedRequest } }: Work, millis: number, promptTokens: number): number => {
  const room = Math.max(0, routedRequest.route.maxModelLen - Math.floor(promptTokens / checked.prompts))
  return checked.choices * Math.min(routedRequest.estimateTokens(millis), checked.outputLimit ?? room, room)
}

/** Asks engines for an answer, until one has given it or none is to be asked any more. */
export const makeAskEngine = (config: GatewaySettings, engine: EngineClient["Service"]) => {
  /** The outcome if nobody is there to answer any more. What an engine may have computed for a caller who left is counted, if the engine has not reported it. */
  const departed = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
    const { admitted, progress } = work
    const { checked, requestAbort, id, routedRequest } = admitted
    const error = abortRefusal(requestAbort)
    if (error === unavailable) return failed(error, "The gateway was stopped.", progress)
    const what = error === keyEnded ? "The API key ended" : "The caller left"
    if (isMetered(work) || checked.endpoint === "/v1/messages/count_tokens") return failed(error, `${what}.`, progress)
    const engineMillis = performance.now() - work.askedAt
    const sample = work.sample ?? samplePrompt(checked)
    const most = routedRequest.route.maxModelLen * checked.prompts
    const counted = yield* countPrompt(engine, { url: routedRequest.url, requestId: id, sample, most })
    const output = checked.stream ? "counts what was received" : "is an estimate from the time that the engine worked"
    const note = `${what} before the engine reported its usage: ${counted.byTokenizer ? byTokenizer : byLength}, the output ${output}.`
    const usage = checked.stream ? progress.usage : { ...progress.usage, output_tokens: estimateOutput(work, engineMillis, counted.tokens) }
    const known = usage.input_tokens + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0)
    return {
      ...failed(error, "", progress),
      usage: known >= counted.tokens ? usage : { ...usage, input_tokens: usage.input_tokens + counted.tokens - known },
      note
    }
  })

  const relayStream = Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, stream: EventStream, signal: RequestAbort) {
    const { admitted, progress } = work
    const { checked, requestAbort, routedRequest, startedAt } = admitted
    const { route } = routedRequest
    work.reader = work.dialect.makeReader(checked)
    const relayed = yield* relay({
      upstream,
      stream,
      progress,
      pulse: routedRequest.pulse,
      begun: () => {
        if (!isMetered(work)) work.sample ??= samplePrompt(checked)
        admitted.letGo()
      },
      answered: () => routedRequest.answered(),
      reader: work.reader,
      rename: restoreModelName(route, checked),
      firstFrame: config.firstFrame - (performance.now() - startedAt),
      silence: config.silence,
      whole: config.stream - (performance.now() - startedAt),
      isMetered: () => isMetered(work),
      requestAbort,
      signal
    })
    if (relayed._tag === "Departed" || (relayed._tag === "Silent" && requestAbort.aborted)) return yield* departed(work)
    if (relayed._tag === "Silent") return failed(engineTimeout, "The engine fell silent.", progress)
    if (relayed._tag === "Broken") {
      const outcome = failed(engineFailed, "The engine's stream broke off.", progress)
      if (relayed.first) return { retry: "lost", outcome } as const
      if (progress.firstContentAt === null) routedRequest.failed()
      return outcome
    }
    if (relayed._tag === "Failed") {
      if (relayed.first) return turnedAway(relayed.payload, 200, work)
      // Some begin each answer before they do anything for it.
      const at = { endpoint: checked.endpoint, maxModelLen: route.maxModelLen }
      if (progress.firstContentAt === null && readEngineError(relayed.payload, 200, at) === engineFailed) routedRequest.failed()
      return failed(engineFailed, "The engine failed.", progress)
    }
    const { finishReason, told, usage } = progress
    if (told === null) yield* Effect.logWarning("the engine told no usage").pipe(Effect.annotateLogs("request_id", admitted.id))
    return { state: "completed", status: 200, usage, finishReason, error: null, note: told === null ? noUsageNote : null, body: null } satisfies Outcome
  })

  const readAnswer = Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, signal: RequestAbort) {
    const { admitted, progress } = work
    const { checked, requestAbort, routedRequest, startedAt } = admitted
    const { route } = routedRequest
    const body = yield* readWhole(upstream, maxAnswer, config.whole - (performance.now() - startedAt), signal)
    if (signal.aborted || (body === "late" && requestAbort.aborted)) return yield* departed(work)
    if (body === "late") return failed(engineTimeout, "The engine did not answer in time.", progress)
    if (body === "broken") {
      routedRequest.failed()
      return failed(engineFailed, "The engine's answer broke off.", progress)
    }
    const text = body.toString("utf8")
    const answer = work.dialect.readWhole(text)
    if (answer === null) return turnedAway(text, 200, work)
    const { finished, finishReason, usage } = answer
    if (!finished) {
      routedRequest.failed()
      return { ...failed(engineFailed, "The engine did not finish its answer.", progress), usage: usage ?? noUsage }
    }
    routedRequest.answered()
    if (usage !== null) routedRequest.observePace(usage.output_tokens / checked.choices, performance.now() - work.askedAt)
    const told = restoreModelName(route, checked)(answer.body)
    return {
      state: "completed",
      status: 200,
      usage: usage ?? noUsage,
      finishReason,
      error: null,
      note: usage === null ? "The engine told no usage." : null,
      body: told
    } satisfies Outcome
  })

  /** One engine's answer; `retry` where another one may be asked. */
  const attempt = Effect.fnUntraced(function* (work: Work, signal: RequestAbort) {
    const { admitted, pendingInsert, progress, stream } = work
    const { checked, requestAbort, id, routedRequest } = admitted
    work.askedAt = performance.now()
    const timeout = (checked.stream ? config.firstFrame : config.whole) - (performance.now() - admitted.startedAt)
    const opened = yield* Effect.result(
      engine.call({
        url: routedRequest.url,
        path: checked.endpoint,
        method: "POST",
        body: () => checked.engineBody,
        requestId: id,
        traceparent: work.observation.traceparent,
        timeout,
        signal
      })
    )
    // Nothing of a stream goes out before the row is committed; the engine works meanwhile. A whole answer waits for its end, which is the same row's.
    if (stream !== null && pendingInsert.exit === null) yield* pendingInsert.ended
    if (signal.aborted) return yield* departed(work)
    if (opened._tag === "Failure") {
      const { reason } = opened.failure
      if (reason === "late") return requestAbort.aborted ? yield* departed(work) : failed(engineTimeout, "The engine did not answer in time.", progress)
      const what = reason === "broken" ? "The engine gave no answer." : "No engine could be reached."
      return { retry: reason === "stale" ? "stale" : "lost", outcome: failed(engineFailed, what, progress) } as const
    }
    const upstream = opened.success
    routedRequest.pulse.at = performance.now()
    const status = upstream.statusCode ?? 500
    if (status === 200) return yield* stream === null ? readAnswer(work, upstream, signal) : relayStream(work, upstream, stream, signal)
    const body = yield* readWhole(upstream, 64 * 1024, 10_000, signal)
    return signal.aborted ? yield* departed(work) : turnedAway(typeof body === "string" ? "" : body.toString("utf8"), status, work)
  })

  /** Asks the first engine, and one other where that took no work and the caller is still there. */
  const askAll = Effect.fnUntraced(function* (work: Work, signal: RequestAbort): Effect.fn.Return<Outcome> {
    const { requestAbort, routedRequest } = work.admitted
    for (;;) {
      const answer = yield* attempt(work, signal)
      if (!("retry" in answer)) return answer.error === clientClosed || requestAbort.reason !== "gone" ? answer : undelivered(answer, work)
      if (requestAbort.reason === "gone") return undelivered(answer.retry === "cut" ? refused(clientClosed) : answer.outcome, work)
      if (answer.retry !== "cut" && !routedRequest.retry(answer.retry)) return answer.outcome
    }
  })

  const ask = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
    const { admitted, progress, stream } = work
    const { checked, requestAbort } = admitted
    // No engine was asked for it.
    if (requestAbort.aborted) return failed(abortRefusal(requestAbort), "No engine was asked.", progress)
    // A stream ends with its first usage. An answer that is not streamed reports none before its end: its engine would write all of it for no one.
    const hold = holdEngine(requestAbort, checked.stream ? config.abandoned : 0, () => {
      stream?.close()
      // The engine has it, and no other is asked.
      if (!progress.hasUsage || checked.prompts > 1) work.sample ??= samplePrompt(checked)
      admitted.letGo()
    })
    return yield* Effect.ensuring(askAll(work, hold.signal), Effect.sync(hold.release))
  })

  return { ask, departed }
}
