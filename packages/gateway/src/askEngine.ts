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
  /** The request's routing; it has an engine. */
  readonly routedRequest: RoutedRequest
  readonly response: ServerResponse
  /** Aborted when the request needs no answer any more; the reason is `gone` if the caller left. */
  readonly requestAbort: RequestAbort
  /** `performance.now()` at the request's first byte. */
  readonly startedAt: number
  /** The caller's own header. */
  readonly traceparent: string | undefined
  /** Null if the caller did not ask for digests. */
  readonly digests: ReceiptDigests | null
  /** Releases the body. No further engine can get the request. */
  readonly releaseBody: () => void
}

/** A request under way. */
export interface Work {
  readonly admitted: Admitted
  readonly dialect: Dialect
  readonly stream: EventStream | null
  /** Reader of the current attempt: each engine's stream needs a new one. */
  reader: StreamReader
  readonly progress: Progress
  readonly pendingInsert: PendingInsert
  readonly observation: Observation
  /** Whether the request was repeated with a lower token limit, because the prompt left too little room. */
  cut: boolean
  /** `performance.now()` when the request was sent to the engine. */
  askedAt: number
  /** Sample of the prompt, kept until the engine has reported its tokens. */
  sample: PromptSample | null
}

/**
 * The request should be repeated: with `cut` on the same engine, otherwise on another one. If there is no other,
 * `outcome` applies.
 */
type Retry = { readonly retry: "lost" | "stale" | "full"; readonly outcome: Outcome } | { readonly retry: "cut" }

/** Largest answer that is not streamed, in bytes. */
const maxAnswer = 16 * 1024 * 1024

/**
 * Handles an engine error before the first frame. Only a failure of the engine itself may have cost work and counts
 * against the engine. `status` is the HTTP status of the answer.
 */
const handleEngineError = (body: string, status: number, work: Work): Outcome | Retry => {
  const { checked, routedRequest } = work.admitted
  const room = work.cut ? null : roomLeft(body)
  const shorter = room === null ? null : cutAnswer(checked.engineBody, room)
  if (shorter !== null) {
    work.cut = true
    routingMetrics.retried(routedRequest.route.model, "cut")
    checked.engineBody = shorter
    return { retry: "cut" }
  }
  const error = readEngineError(body, status, { endpoint: checked.endpoint, maxModelLen: routedRequest.route.maxModelLen })
  if (error === modelOverloaded) return { retry: "full", outcome: refused(error) }
  if (error !== engineFailed) return refused(error)
  routedRequest.failed()
  return failed(error, "The engine failed.", work.progress)
}

const noUsageNote = "The engine reported no usage: the output tokens are those that were delivered, the input is unknown."

const byTokenizer = "the input was counted with the model's tokenizer"
const byLength = "the input is an estimate from the prompt's length"

/** Whether the engine has reported the tokens of the prompt. With several prompts, the engine reports them one at a time. */
const isMetered = ({ admitted: { checked }, progress }: Work): boolean => checked.prompts === 1 && progress.hasUsage

/** The outcome after the caller left: it keeps the engine's usage, and no answer was delivered. */
const withoutDelivery = (outcome: Outcome, { progress }: Work): Outcome =>
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

/** Sends a request to engines until one has answered, or no further attempt is allowed. */
export const makeAskEngine = (config: GatewaySettings, engine: EngineClient["Service"]) => {
  /**
   * The outcome of an aborted request. If the caller left before the engine reported its usage, the computed tokens are
   * counted here.
   */
  const departed = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
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
        admitted.releaseBody()
      },
      answered: () => routedRequest.answered(),
      reader: work.reader,
      rename: restoreModelName(route, checked),
      firstFrameMillis: config.firstFrameMillis - (performance.now() - startedAt),
      silenceMillis: config.silenceMillis,
      streamMillis: config.streamMillis - (performance.now() - startedAt),
      isMetered: () => isMetered(work),
      requestAbort,
      signal
    })
    if (relayed._tag === "Departed" || (relayed._tag === "Silent" && requestAbort.aborted)) return yield* departed(work)
    if (relayed._tag === "Silent") return failed(engineTimeout, "The engine stopped sending.", progress)
    if (relayed._tag === "Broken") {
      const outcome = failed(engineFailed, "The engine's stream broke off.", progress)
      if (relayed.first) return { retry: "lost", outcome } as const
      if (progress.firstContentAt === null) routedRequest.failed()
      return outcome
    }
    if (relayed._tag === "Failed") {
      if (relayed.first) return handleEngineError(relayed.payload, 200, work)
      // Some engines send a first frame before they do any work.
      const at = { endpoint: checked.endpoint, maxModelLen: route.maxModelLen }
      if (progress.firstContentAt === null && readEngineError(relayed.payload, 200, at) === engineFailed) routedRequest.failed()
      return failed(engineFailed, "The engine failed.", progress)
    }
    const { finishReason, reportedUsage, usage } = progress
    if (reportedUsage === null) yield* Effect.logWarning("the engine reported no usage").pipe(Effect.annotateLogs("request_id", admitted.id))
    return {
      state: "completed",
      status: 200,
      usage,
      finishReason,
      error: null,
      note: reportedUsage === null ? noUsageNote : null,
      body: null
    } satisfies Outcome
  })

  const readAnswer = Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, signal: RequestAbort) {
    const { admitted, progress } = work
    const { checked, requestAbort, routedRequest, startedAt } = admitted
    const { route } = routedRequest
    const body = yield* readWhole(upstream, maxAnswer, config.answerMillis - (performance.now() - startedAt), signal)
    if (signal.aborted || (body === "late" && requestAbort.aborted)) return yield* departed(work)
    if (body === "late") return failed(engineTimeout, "The engine did not answer in time.", progress)
    if (body === "broken") {
      routedRequest.failed()
      return failed(engineFailed, "The engine's answer broke off.", progress)
    }
    const text = body.toString("utf8")
    const answer = work.dialect.readWhole(text)
    if (answer === null) return handleEngineError(text, 200, work)
    const { finished, finishReason, usage } = answer
    if (!finished) {
      routedRequest.failed()
      return { ...failed(engineFailed, "The engine did not finish its answer.", progress), usage: usage ?? noUsage }
    }
    routedRequest.answered()
    if (usage !== null) routedRequest.observePace(usage.output_tokens / checked.choices, performance.now() - work.askedAt)
    const bodyForCaller = restoreModelName(route, checked)(answer.body)
    return {
      state: "completed",
      status: 200,
      usage: usage ?? noUsage,
      finishReason,
      error: null,
      note: usage === null ? "The engine reported no usage." : null,
      body: bodyForCaller
    } satisfies Outcome
  })

  /** One attempt with one engine. `retry` is set if another attempt is allowed. */
  const attempt = Effect.fnUntraced(function* (work: Work, signal: RequestAbort) {
    const { admitted, pendingInsert, progress, stream } = work
    const { checked, requestAbort, id, routedRequest } = admitted
    work.askedAt = performance.now()
    const timeout = (checked.stream ? config.firstFrameMillis : config.answerMillis) - (performance.now() - admitted.startedAt)
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
    // No byte of a stream may be sent before the row is committed; the engine works in parallel. An answer that is not
    // streamed is recorded by the same row at its end.
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
    return signal.aborted ? yield* departed(work) : handleEngineError(typeof body === "string" ? "" : body.toString("utf8"), status, work)
  })

  /**
   * Sends the request to the first engine. If that did no work and the caller is still connected, sends it to one other
   * engine.
   */
  const askAll = Effect.fnUntraced(function* (work: Work, signal: RequestAbort): Effect.fn.Return<Outcome> {
    const { requestAbort, routedRequest } = work.admitted
    for (;;) {
      const answer = yield* attempt(work, signal)
      if (!("retry" in answer)) return answer.error === clientClosed || requestAbort.reason !== "gone" ? answer : withoutDelivery(answer, work)
      if (requestAbort.reason === "gone") return withoutDelivery(answer.retry === "cut" ? refused(clientClosed) : answer.outcome, work)
      if (answer.retry !== "cut" && !routedRequest.retry(answer.retry)) return answer.outcome
    }
  })

  const ask = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
    const { admitted, progress, stream } = work
    const { checked, requestAbort } = admitted
    // Aborted before any engine got the request.
    if (requestAbort.aborted) return failed(abortRefusal(requestAbort), "No engine got the request.", progress)
    // A stream may stop as soon as it reported usage. An answer that is not streamed reports none before its end, so
    // its engine stops at once.
    const hold = holdEngine(requestAbort, checked.stream ? config.abandonedMillis : 0, () => {
      stream?.close()
      // The engine has the request, and no other engine gets it.
      if (!progress.hasUsage || checked.prompts > 1) work.sample ??= samplePrompt(checked)
      admitted.releaseBody()
    })
    return yield* Effect.ensuring(askAll(work, hold.signal), Effect.sync(hold.release))
  })

  return { ask, departed }
}
