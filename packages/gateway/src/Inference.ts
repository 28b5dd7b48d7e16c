import type { ServerResponse } from "node:http"
import type { RequestId } from "@seatrial/domain"
import { type Caller, Metering, type RequestStart } from "@seatrial/store"
import { Cause, Context, Effect, Exit, Layer } from "effect"
import { Beginning } from "./Beginning.ts"
import type { Departure } from "./Departure.ts"
import { deliver, handedOver } from "./deliver.ts"
import type { Dialect, StreamReader } from "./dialects/Dialect.ts"
import { dialects } from "./dialects/dialects.ts"
import { EngineClient } from "./EngineClient.ts"
import { EventStream } from "./EventStream.ts"
import { elapsed, round } from "./elapsed.ts"
import type { EngineAnswer } from "./engine/EngineAnswer.ts"
import { readEngineError, roomLeft } from "./engineError.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { failed, noUsage, type Outcome, refused, requestError } from "./Outcome.ts"
import { type Observation, Observer } from "./observability/Observer.ts"
import { routingMetrics } from "./observability/RoutingMetrics.ts"
import { Progress } from "./Progress.ts"
import { Running } from "./Running.ts"
import { readWhole } from "./readWhole.ts"
import { clientClosed, engineFailed, engineTimeout, faultOf, modelOverloaded, unavailable } from "./refusals.ts"
import { relay } from "./relay.ts"
import type { Passage } from "./routing/Passage.ts"
import { cutAnswer } from "./vocabulary/answerLimit.ts"
import type { CheckedRequest } from "./vocabulary/checkRequest.ts"
import { namedAsAsked } from "./vocabulary/namedAsAsked.ts"

export interface Admitted {
  readonly id: RequestId
  readonly caller: Caller
  readonly checked: CheckedRequest
  /** Its way to an engine, which it has entered. */
  readonly passage: Passage
  readonly response: ServerResponse
  /** Aborted when there is nobody to answer any more; the reason is `gone` for a caller who left. */
  readonly departure: Departure
  /** `performance.now()` at the request's first byte. */
  readonly startedAt: number
  /** As the caller sent it. */
  readonly traceparent: string | undefined
  /** Lets go of the body: no engine is asked any more. */
  readonly letGo: () => void
}

/** A request under way. */
interface Work {
  readonly admitted: Admitted
  readonly dialect: Dialect
  readonly stream: EventStream | null
  /** Of the attempt under way: each engine's stream is read anew. */
  reader: StreamReader
  readonly progress: Progress
  readonly beginning: Beginning
  readonly observation: Observation
  /** Whether it was asked again for an answer that its prompt leaves room for. */
  cut: boolean
}

/** That the request is to be sent once more: to another engine where there is one, else `outcome` holds; or, cut, to the same. */
type Again = { readonly retry: "lost" | "stale" | "full"; readonly outcome: Outcome } | { readonly retry: "cut" }

/** Bytes of the largest answer that is not streamed. */
const maxAnswer = 16 * 1024 * 1024

const departed = ({ admitted: { departure }, progress }: Work): Outcome =>
  departure.reason === "gone" ? failed(clientClosed, "The caller left.", progress) : failed(unavailable, "The gateway was stopped.", progress)

/** An error of the engine before any frame; only one of the engine itself may have cost work, and tells of the engine. `status` is the answer's. */
const turnedAway = (said: string, status: number, work: Work): Outcome | Again => {
  const { checked, passage } = work.admitted
  const room = work.cut ? null : roomLeft(said)
  const shorter = room === null ? null : cutAnswer(checked.engineBody, room)
  if (shorter !== null) {
    work.cut = true
    routingMetrics.retried(passage.route.model, "cut")
    checked.engineBody = shorter
    return { retry: "cut" }
  }
  const error = readEngineError(said, status, { endpoint: checked.endpoint, maxModelLen: passage.route.maxModelLen })
  if (error === modelOverloaded) return { retry: "full", outcome: refused(error) }
  if (error !== engineFailed) return refused(error)
  passage.failed()
  return failed(error, "The engine failed.", work.progress)
}

const untold = "The engine told no usage: the output counts what was delivered, the input is unknown."

/** Sends an admitted request to an engine, its answer to the caller, and its record to Postgres before the caller has the last byte. */
export class Inference extends Context.Service<Inference, { readonly serve: (admitted: Admitted) => Effect.Effect<void> }>()("seatrial/Inference") {
  static readonly layer = Layer.effect(
    Inference,
    Effect.gen(function* () {
      const config = yield* GatewayConfig
      const engine = yield* EngineClient
      const metering = yield* Metering
      const observer = yield* Observer
      const running = yield* Running.make

      const relayStream = Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer, stream: EventStream) {
        const { admitted, progress } = work
        const { checked, departure, passage, startedAt } = admitted
        const { route } = passage
        work.reader = work.dialect.makeReader(checked)
        const relayed = yield* relay({
          upstream,
          stream,
          progress,
          pulse: passage.pulse,
          begun: admitted.letGo,
          answered: () => passage.answered(),
          reader: work.reader,
          rename: namedAsAsked(route, checked),
          firstFrame: config.firstFrame - (performance.now() - startedAt),
          silence: config.silence,
          whole: config.stream - (performance.now() - startedAt),
          signal: departure
        })
        if (relayed._tag === "Departed") return departed(work)
        if (relayed._tag === "Silent") return failed(engineTimeout, "The engine fell silent.", progress)
        if (relayed._tag === "Broken") {
          const outcome = failed(engineFailed, "The engine's stream broke off.", progress)
          if (relayed.first) return { retry: "lost", outcome } as const
          if (progress.firstContentAt === null) passage.failed()
          return outcome
        }
        if (relayed._tag === "Failed") {
          if (relayed.first) return turnedAway(relayed.payload, 200, work)
          // Some begin each answer before they do anything for it.
          const at = { endpoint: checked.endpoint, maxModelLen: route.maxModelLen }
          if (progress.firstContentAt === null && readEngineError(relayed.payload, 200, at) === engineFailed) passage.failed()
          return failed(engineFailed, "The engine failed.", progress)
        }
        const { finishReason, told, usage } = progress
        if (told === null) yield* Effect.logWarning("the engine told no usage").pipe(Effect.annotateLogs("request_id", admitted.id))
        return { state: "completed", status: 200, usage, finishReason, error: null, note: told === null ? untold : null, body: null } satisfies Outcome
      })

      const readAnswer = Effect.fnUntraced(function* (work: Work, upstream: EngineAnswer) {
        const { admitted, progress } = work
        const { checked, departure, passage, startedAt } = admitted
        const { route } = passage
        const body = yield* readWhole(upstream, maxAnswer, config.whole - (performance.now() - startedAt), departure)
        if (departure.aborted) return departed(work)
        if (body === "late") return failed(engineTimeout, "The engine did not answer in time.", progress)
        if (body === "broken") {
          passage.failed()
          return failed(engineFailed, "The engine's answer broke off.", progress)
        }
        const text = body.toString("utf8")
        const answer = work.dialect.readWhole(text)
        if (answer === null) return turnedAway(text, 200, work)
        const { finished, finishReason, usage } = answer
        if (!finished) {
          passage.failed()
          return { ...failed(engineFailed, "The engine did not finish its answer.", progress), usage: usage ?? noUsage }
        }
        passage.answered()
        const told = namedAsAsked(route, checked)(answer.body)
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
      const attempt = Effect.fnUntraced(function* (work: Work) {
        const { admitted, beginning, progress, stream } = work
        const { checked, departure, id, passage } = admitted
        const timeout = (checked.stream ? config.firstFrame : config.whole) - (performance.now() - admitted.startedAt)
        const opened = yield* Effect.result(
          engine.call({
            url: passage.url,
            path: checked.endpoint,
            method: "POST",
            body: () => checked.engineBody,
            requestId: id,
            traceparent: work.observation.traceparent,
            timeout,
            signal: departure
          })
        )
        // Nothing of a stream goes out before the row is committed; the engine works meanwhile. A whole answer waits for its end, which is the same row's.
        if (stream !== null && beginning.exit === null) yield* beginning.ended
        if (departure.aborted) return departed(work)
        if (opened._tag === "Failure") {
          const { reason } = opened.failure
          if (reason === "late") return failed(engineTimeout, "The engine did not answer in time.", progress)
          const what = reason === "broken" ? "The engine gave no answer." : "No engine could be reached."
          return { retry: reason === "stale" ? "stale" : "lost", outcome: failed(engineFailed, what, progress) } as const
        }
        const upstream = opened.success
        passage.pulse.at = performance.now()
        const status = upstream.statusCode ?? 500
        if (status === 200) return yield* stream === null ? readAnswer(work, upstream) : relayStream(work, upstream, stream)
        const body = yield* readWhole(upstream, 64 * 1024, 10_000, departure)
        return departure.aborted ? departed(work) : turnedAway(typeof body === "string" ? "" : body.toString("utf8"), status, work)
      })

      /** What an engine made of the request; one other is asked where the first took no work. */
      const ask = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<Outcome> {
        for (;;) {
          const answer = yield* attempt(work)
          if (!("retry" in answer)) return answer
          if (answer.retry !== "cut" && !work.admitted.passage.another(answer.retry)) return answer.outcome
        }
      })

      const record = (
        { passage: { route }, startedAt }: Admitted,
        start: RequestStart,
        { error, finishReason, note, state, status, usage }: Outcome,
        firstContentAt: number | null
      ) =>
        state === "refused" && error !== null
          ? metering.refuse({
              id: start.id,
              orgId: start.orgId,
              keyId: start.keyId,
              endpoint: start.endpoint,
              streamed: start.streamed,
              modelId: start.modelId,
              model: start.model,
              statusCode: status,
              latencyMs: elapsed(startedAt),
              error: requestError(error)
            })
          : metering.end({
              ...start,
              statusCode: status,
              usage,
              ttftMs: firstContentAt === null ? null : round(firstContentAt - startedAt),
              latencyMs: elapsed(startedAt),
              finishReason,
              error: error === null ? null : requestError(error),
              note: usage.clipped ? [note, "The engine told of more cached tokens than the prompt has."].filter((part) => part !== null).join(" ") : note,
              receipt: { prices: route.prices, hfRevision: route.hfRevision, engineVersion: route.engineVersion }
            })

      const logged = (id: RequestId, message: string) => (cause: Cause.Cause<unknown>) =>
        Effect.logError(message, cause).pipe(Effect.annotateLogs("request_id", id), Effect.as(faultOf(Cause.squash(cause))))

      // Made once: V8 gives the generators of each function a shape of their own, and a new one costs it many times what runs in it.
      const serveMasked = Effect.fnUntraced(function* (admitted: Admitted, restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) {
        const { caller, checked, departure, id, passage, response } = admitted
        const { model, modelId, revisionId } = passage.route
        const dialect = dialects[checked.endpoint]
        const observed = { id, endpoint: checked.endpoint, given: admitted.traceparent, startedAt: admitted.startedAt }
        const observation = observer.begin(observed, caller, passage.route)
        const progress = new Progress(dialect.usageOf, (seconds) => observation.series.betweenTokens.observe(seconds, id))
        const { heartbeat, writeStall } = config
        const onStall = () => departure.abort("gone")
        const stream = checked.stream ? new EventStream({ response, heartbeat, keepAlive: dialect.heartbeat, writeStall, onStall }) : null
        const start: RequestStart = {
          id,
          orgId: caller.orgId,
          keyId: caller.keyId,
          endpoint: checked.endpoint,
          streamed: checked.stream,
          modelId,
          model,
          revisionId
        }
        const beginning = new Beginning()
        let over = false
        metering.enter(start, (exit) => {
          beginning.settle(exit)
          if (Exit.isFailure(exit)) departure.abort("unrecorded")
          else if (!over) {
            running.add({ id, orgId: caller.orgId }, progress)
            stream?.open()
          }
        })
        const work: Work = { admitted, dialect, stream, reader: dialect.makeReader(checked), progress, beginning, observation, cut: false }
        const outcome = yield* restore(ask(work)).pipe(
          Effect.catchCause((cause) => {
            departure.abort("stopped")
            if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(departed(work))
            return Effect.map(logged(id, "inference failed")(cause), (error) => failed(error, "The gateway failed.", progress))
          })
        )
        stream?.close()
        if (outcome.usage.clipped) {
          yield* Effect.logWarning("the engine told of more cached tokens than its prompt has").pipe(Effect.annotateLogs("request_id", id))
        }
        over = true
        const unrecorded = beginning.exit !== null && Exit.isFailure(beginning.exit) ? beginning.exit : null
        const committed = yield* (unrecorded ?? record(admitted, start, outcome, progress.firstContentAt)).pipe(
          Effect.as(null),
          Effect.catchCause(logged(id, "the record could not be committed"))
        )
        running.remove(id)
        const { firstContentAt } = progress
        observer.ended(observed, observation, { caller, route: passage.route, streamed: checked.stream, outcome, told: committed, firstContentAt })
        passage.leave()
        // Nobody may take an answer for complete that is not recorded.
        deliver({ response, stream, reader: work.reader, dialect, id, body: outcome.body, error: outcome.error ?? committed })
        yield* restore(handedOver(response, writeStall))
      })
      const serve = (admitted: Admitted) => Effect.uninterruptibleMask((restore) => serveMasked(admitted, restore))

      return Inference.of({ serve })
    })
  )
}
