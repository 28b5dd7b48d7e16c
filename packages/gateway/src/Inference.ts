import type { IncomingMessage, ServerResponse } from "node:http"
import type { RequestError, RequestId, Usage } from "@seatrial/domain"
import { type Caller, Metering, type RequestEnd, type RequestRefusal, type Route } from "@seatrial/store"
import { Context, Effect, Fiber, Layer, Option, Schedule, Schema } from "effect"
import { EngineClient } from "./EngineClient.ts"
import { EngineUsage, usageOf } from "./frames.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import { Outstanding } from "./Outstanding.ts"
import {
  contextLengthExceeded,
  engineFailed,
  engineTimeout,
  errorBody,
  invalidParameter,
  modelOverloaded,
  modelStarting,
  Refusal,
  unavailable,
  writeRefusal
} from "./refusals.ts"
import { readWhole, relay, startStream } from "./relay.ts"
import type { CheckedRequest } from "./requestBody.ts"

export interface Admitted {
  readonly id: RequestId
  readonly caller: Caller
  readonly checked: CheckedRequest
  readonly route: Route
  readonly response: ServerResponse
  /** `performance.now()` at the request's first byte. */
  readonly startedAt: number
}

/** How a request ended, for its record. */
interface Ending {
  readonly status: number
  readonly usage: Usage
  readonly firstContentAt: number | null
  readonly finishReason: string | null
  readonly error: Refusal | null
  readonly note: string | null
}

/** The end of a request and what is left to tell the caller, which waits until the record is committed. */
interface Outcome {
  readonly end: { readonly _tag: "Ended"; readonly ending: Ending } | { readonly _tag: "Refused"; readonly error: Refusal }
  readonly deliver: () => void
}

const clientClosed = new Refusal({ status: 499, type: "api_error", code: "client_closed_request", message: "The caller left.", param: null })
const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: null, cache_write_tokens: null }

const WholeAnswer = Schema.fromJsonString(
  Schema.Struct({
    usage: Schema.optionalKey(Schema.NullOr(EngineUsage)),
    choices: Schema.Array(Schema.Struct({ finish_reason: Schema.NullOr(Schema.String) })).check(Schema.isMinLength(1))
  })
)
const decodeWhole = Schema.decodeUnknownOption(WholeAnswer)

const EngineError = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ message: Schema.String }) }))
const decodeEngineError = Schema.decodeUnknownOption(EngineError)

/** Our own words for an engine's refusal: its own may echo the prompt. */
const translate = (status: number, body: Buffer | null, route: Route): Refusal => {
  if (status === 503) return modelOverloaded
  if (status >= 500 || body === null) return engineFailed
  const message = Option.match(decodeEngineError(body.toString("utf8")), { onNone: () => "", onSome: ({ error }) => error.message })
  return /context length|max_model_len|too long/i.test(message)
    ? contextLengthExceeded(`This model's maximum context length is ${route.maxModelLen} tokens. Shorten the input or lower max_tokens.`, "messages")
    : invalidParameter("The engine cannot serve the request with these parameters.")
}

/** Milliseconds with three decimals. */
const round = (milliseconds: number) => Math.round(milliseconds * 1_000) / 1_000
export const elapsed = (startedAt: number): number => round(performance.now() - startedAt)

const outcome = (ending: Ending, deliver: () => void): Outcome => ({ end: { _tag: "Ended", ending }, deliver })

/** Work was or may have been done, and there is no answer. */
const failure = (response: ServerResponse, id: RequestId, error: Refusal, note: string): Outcome =>
  outcome({ status: error.status, usage: noUsage, firstContentAt: null, finishReason: null, error, note }, () =>
    error === clientClosed ? response.destroy() : writeRefusal(response, error, id)
  )

/** The engine turned the request away before any work. */
const refusal = (response: ServerResponse, id: RequestId, error: Refusal): Outcome => ({
  end: { _tag: "Refused", error },
  deliver: () => writeRefusal(response, error, id)
})

/** Fails once the caller is gone. */
const left = (response: ServerResponse): Effect.Effect<never, Refusal> =>
  Effect.callback((resume) => {
    const gone = () => resume(Effect.fail(clientClosed))
    if (response.destroyed) return gone()
    response.once("close", gone)
    return Effect.sync(() => {
      response.off("close", gone)
    })
  })

const requestError = (error: Refusal): RequestError => ({ code: error.code, message: error.message, param: error.param })

/** Sends an admitted request to an engine, its answer to the caller, and its record to Postgres before the caller has the last byte. */
export class Inference extends Context.Service<Inference, { readonly serve: (admitted: Admitted) => Effect.Effect<void> }>()("seatrial/Inference") {
  static readonly layer = Layer.effect(
    Inference,
    Effect.gen(function* () {
      const config = yield* GatewayConfig
      const engine = yield* EngineClient
      const metering = yield* Metering
      const outstanding = new Outstanding()

      /** One engine's answer; another endpoint is tried once where the first took no work. */
      const open = Effect.fnUntraced(function* ({ checked, id, route }: Admitted) {
        const tried = new Set<string>()
        for (;;) {
          const endpoint = outstanding.pick(route.endpoints, tried)
          if (endpoint === undefined) return yield* tried.size === 0 ? modelStarting : engineFailed
          tried.add(endpoint.url)
          yield* outstanding.hold(endpoint.url)
          const timeout = checked.stream ? config.firstFrame : config.whole
          const call = engine.call({ url: endpoint.url, path: checked.endpoint, method: "POST", body: checked.engineBody, requestId: id, timeout })
          const answer = yield* Effect.result(call)
          if (answer._tag === "Success") return answer.success
          if (answer.failure.timedOut) return yield* engineTimeout
          if (answer.failure.worked || tried.size > 1) return yield* engineFailed
        }
      })

      const record = ({ caller, id, route, startedAt }: Admitted, ending: Ending): RequestEnd => ({
        id,
        orgId: caller.orgId,
        statusCode: ending.status,
        usage: ending.usage,
        ttftMs: ending.firstContentAt === null ? null : round(ending.firstContentAt - startedAt),
        latencyMs: elapsed(startedAt),
        finishReason: ending.finishReason,
        error: ending.error === null ? null : requestError(ending.error),
        note: ending.note,
        receipt: { prices: route.prices, hfRevision: route.hfRevision, engineVersion: route.engineVersion }
      })

      const refusalRecord = ({ caller, checked, id, route, startedAt }: Admitted, error: Refusal): RequestRefusal => ({
        id,
        orgId: caller.orgId,
        keyId: caller.keyId,
        endpoint: checked.endpoint,
        streamed: checked.stream,
        modelId: route.modelId,
        model: route.model,
        statusCode: error.status,
        latencyMs: elapsed(startedAt),
        error: requestError(error)
      })

      const stream = Effect.fnUntraced(function* ({ checked, id, response }: Admitted, upstream: IncomingMessage, seen: { usage: Usage }) {
        const relayed = yield* relay({
          upstream,
          response,
          wantsUsage: checked.wantsUsage,
          heartbeat: config.heartbeat,
          silence: config.silence,
          writeStall: config.writeStall,
          onUsage: (usage) => {
            seen.usage = usage
          }
        })
        const usage = relayed.usage ?? { ...noUsage, output_tokens: relayed.contentFrames }
        const untold = relayed.usage === null ? "The engine told no usage: the output counts what was delivered, the input is unknown." : null
        const { firstContentAt, finishReason } = relayed
        if (relayed.end === "done") {
          return outcome({ status: 200, usage, firstContentAt, finishReason, error: null, note: untold }, () => {
            startStream(response)
            response.end("data: [DONE]\n\n")
          })
        }
        const error = relayed.end === "client_gone" ? clientClosed : relayed.end === "silent" ? engineTimeout : engineFailed
        const note = untold ?? "The stream broke off: usage as the engine last told it."
        // Where the head is out, the status 200 was sent: the record says what became of it, the caller gets an error frame.
        const status = relayed.started && relayed.end !== "client_gone" ? 502 : error.status
        return outcome({ status, usage, firstContentAt, finishReason: null, error, note }, () => {
          if (relayed.end === "client_gone") response.destroy()
          else if (relayed.started) response.end(`data: ${errorBody(error, id)}\n\ndata: [DONE]\n\n`)
          else writeRefusal(response, error, id)
        })
      })

      const whole = Effect.fnUntraced(function* ({ id, response }: Admitted, upstream: IncomingMessage) {
        const body = yield* readWhole(upstream, 64 * 1024 * 1024, config.whole)
        const answer = body === null ? Option.none() : decodeWhole(body.toString("utf8"))
        if (body === null || Option.isNone(answer)) return failure(response, id, engineFailed, "The engine's answer broke off.")
        const { choices, usage } = answer.value
        const known = usage === undefined || usage === null ? null : usageOf(usage)
        const note = known === null ? "The engine told no usage." : null
        return outcome({ status: 200, usage: known ?? noUsage, firstContentAt: null, finishReason: choices[0]?.finish_reason ?? null, error: null, note }, () =>
          response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body)
        )
      })

      /** What the engine made of the request; the caller has not been told the end of it. */
      const work = Effect.fnUntraced(function* (admitted: Admitted, begun: Fiber.Fiber<void>, seen: { usage: Usage }) {
        const { checked, id, response, route } = admitted
        const opened = yield* Effect.result(Effect.raceFirst(open(admitted), left(response)))
        // Nothing goes out before the row is committed; the engine works meanwhile.
        yield* Fiber.join(begun)
        if (opened._tag === "Failure") return failure(response, id, opened.failure, "The engine gave no answer.")
        const upstream = opened.success
        if (upstream.statusCode !== 200) {
          const error = translate(upstream.statusCode ?? 500, yield* readWhole(upstream, 1024 * 1024, 10_000), route)
          return error.status < 500 || error === modelOverloaded ? refusal(response, id, error) : failure(response, id, error, "The engine failed.")
        }
        if (checked.stream) return yield* stream(admitted, upstream, seen)
        return yield* Effect.raceFirst(
          whole(admitted, upstream),
          Effect.catch(left(response), (error) => Effect.succeed(failure(response, id, error, "The caller left.")))
        )
      })

      const serve = Effect.fn("Inference.serve")(function* (admitted: Admitted) {
        const { caller, checked, id, response, route } = admitted
        const seen = { usage: noUsage }
        const { modelId, model, revisionId } = route
        const begun = yield* Effect.forkChild(
          metering.begin({ id, orgId: caller.orgId, keyId: caller.keyId, endpoint: checked.endpoint, streamed: checked.stream, modelId, model, revisionId }),
          { startImmediately: true }
        )
        yield* Effect.forkScoped(
          Effect.repeat(
            Effect.delay(
              Effect.suspend(() => metering.checkpoint(id, seen.usage)),
              "5 seconds"
            ),
            Schedule.forever
          )
        )
        const { deliver, end } = yield* work(admitted, begun, seen).pipe(
          Effect.onInterrupt(() =>
            Fiber.join(begun).pipe(
              Effect.andThen(
                metering.end(
                  record(admitted, {
                    status: 503,
                    usage: seen.usage,
                    firstContentAt: null,
                    finishReason: null,
                    error: unavailable,
                    note: "The gateway was stopped."
                  })
                )
              ),
              Effect.andThen(Effect.sync(() => response.destroy()))
            )
          )
        )
        yield* Effect.uninterruptible(end._tag === "Ended" ? metering.end(record(admitted, end.ending)) : metering.refuse(refusalRecord(admitted, end.error)))
        yield* Effect.sync(deliver)
      }, Effect.scoped)

      return Inference.of({ serve })
    })
  )
}
