import { schemaProblem } from "@seatrial/domain"
import { Cause, Clock, Context, Duration, Effect, Result, Schema } from "effect"
import { Headers, HttpClient, HttpClientError, type HttpClientResponse } from "effect/http"
import { type ClientFailure, InvalidInput, NotSeatrial, Unreachable, VersionSkew } from "./failures.ts"

/** What was answered in the exchange under way: a failure to decode it does not tell. */
const Exchange = Context.Reference<{ response?: HttpClientResponse.HttpClientResponse }>("seatrial/client/Exchange", { defaultValue: () => ({}) })

/** A client that leaves each answer for `exchange` to judge by. */
export const recording = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.tap(client, (response) =>
    Effect.map(Exchange, (exchange) => {
      exchange.response = response
    })
  )

/** Statuses with which a proxy says that the server behind it cannot answer now. */
const passing = new Set([429, 502, 503, 504])

const told = (header: string | undefined, now: number): { readonly retryAfter?: number } => {
  if (header === undefined) return {}
  return Result.match(Headers.parseRetryAfter(header), {
    onFailure: () => ({}),
    onSuccess: (retryAfter) => ({ retryAfter: Duration.toSeconds(Headers.retryAfterDelay(retryAfter, now)) })
  })
}

const judge = (address: string, response: HttpClientResponse.HttpClientResponse, now: number): ClientFailure => {
  const { headers, status } = response
  const requestId = headers["x-request-id"] ?? null
  if (requestId?.startsWith("req_") === true) {
    const message =
      status === 404 || status === 405
        ? `${address} does not know this operation (${status}). Is it older than this client?`
        : `${address} answered ${status} with something that this client does not understand. Are their versions the same?`
    return new VersionSkew({ message, status, requestId })
  }
  if (passing.has(status)) {
    return new Unreachable({ message: `A proxy at ${address} answers ${status}.`, ...told(headers["retry-after"], now) })
  }
  return new NotSeatrial({ message: `${address} answered ${status}, and not as a Seatrial server does. Is the address right?`, status })
}

const isBroken = (error: unknown): error is HttpClientError.HttpClientError =>
  HttpClientError.isHttpClientError(error) && error.reason._tag === "DecodeError" && error.reason.cause !== undefined

/** One try of an operation, with what the transport and the codecs report turned into what it means to the caller. */
export const exchange =
  (address: string) =>
  <A, E, R>(once: Effect.Effect<A, E | HttpClientError.HttpClientError | Schema.SchemaError, R>): Effect.Effect<A, E | ClientFailure, R> =>
    Effect.suspend(() => {
      const seen: { response?: HttpClientResponse.HttpClientResponse } = {}
      return once.pipe(
        Effect.provideService(Exchange, seen),
        Effect.catchCause((cause): Effect.Effect<never, E | ClientFailure> => {
          const misread = (response: HttpClientResponse.HttpClientResponse) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(judge(address, response, now)))
          const failures = cause.reasons.filter(Cause.isFailReason).map(({ error }) => error)
          const broken = failures.find(isBroken)
          if (broken !== undefined) return Effect.fail(new Unreachable({ message: `The connection to ${address} broke within an answer.`, cause: broken }))
          const [error] = failures
          if (error === undefined) return Effect.failCause(Cause.fromReasons(cause.reasons.filter((reason) => !Cause.isFailReason(reason))))
          if (HttpClientError.isHttpClientError(error)) {
            if (error.response !== undefined) return misread(error.response)
            if (error.reason._tag === "TransportError")
              return Effect.fail(new Unreachable({ message: `${address} does not answer. Is the server running?`, cause: error }))
            return Effect.fail(new InvalidInput({ message: error.message, param: null }))
          }
          if (Schema.isSchemaError(error)) {
            if (seen.response !== undefined) return misread(seen.response)
            const { message, param } = schemaProblem(error.issue)
            return Effect.fail(new InvalidInput({ message: `${param ?? "The input"} ${message}.`, param }))
          }
          return Effect.fail(error)
        })
      )
    })
