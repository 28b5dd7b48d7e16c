import { schemaProblem } from "@seatrial/domain"
import { Cause, Clock, Context, Duration, Effect, Result, Schema } from "effect"
import { Headers, HttpClient, HttpClientError, type HttpClientResponse } from "effect/http"
import { type ClientFailure, InvalidInput, NotSeatrial, Unreachable, VersionSkew } from "./failures.ts"

/** The response of the current exchange. A decoding error does not carry it. */
const Exchange = Context.Reference<{ response?: HttpClientResponse.HttpClientResponse }>("seatrial/client/Exchange", { defaultValue: () => ({}) })

/** A client that records each response for `exchange`. */
export const recording = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.tap(client, (response) =>
    Effect.map(Exchange, (exchange) => {
      exchange.response = response
    })
  )

/** Statuses with which a proxy reports that its server is temporarily unavailable. */
const passing = new Set([429, 502, 503, 504])

const parseRetryAfter = (header: string | undefined, now: number): { readonly retryAfter?: number } => {
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
        : `${address} answered ${status} with content that this client does not understand. Are their versions the same?`
    return new VersionSkew({ message, status, requestId })
  }
  if (passing.has(status)) {
    return new Unreachable({ message: `A proxy at ${address} answers ${status}.`, ...parseRetryAfter(headers["retry-after"], now) })
  }
  return new NotSeatrial({ message: `${address} answered ${status}, but not like a Seatrial server. Is the address right?`, status })
}

const isBroken = (error: unknown): error is HttpClientError.HttpClientError =>
  HttpClientError.isHttpClientError(error) && error.reason._tag === "DecodeError" && error.reason.cause !== undefined

/** One attempt of an operation. Maps errors of transport and codecs to the client's typed failures. */
export const exchange =
  (address: string) =>
  <A, E, R>(once: Effect.Effect<A, E | HttpClientError.HttpClientError | Schema.SchemaError, R>): Effect.Effect<A, E | ClientFailure, R> =>
    Effect.suspend(() => {
      const received: { response?: HttpClientResponse.HttpClientResponse } = {}
      return once.pipe(
        Effect.provideService(Exchange, received),
        Effect.catchCause((cause): Effect.Effect<never, E | ClientFailure> => {
          const misread = (response: HttpClientResponse.HttpClientResponse) =>
            Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(judge(address, response, now)))
          const failures = cause.reasons.filter(Cause.isFailReason).map(({ error }) => error)
          const broken = failures.find(isBroken)
          if (broken !== undefined) return Effect.fail(new Unreachable({ message: `The connection to ${address} broke during a response.`, cause: broken }))
          const [error] = failures
          if (error === undefined) return Effect.failCause(Cause.fromReasons(cause.reasons.filter((reason) => !Cause.isFailReason(reason))))
          if (HttpClientError.isHttpClientError(error)) {
            if (error.response !== undefined) return misread(error.response)
            if (error.reason._tag === "TransportError")
              return Effect.fail(new Unreachable({ message: `${address} does not answer. Is the server running?`, cause: error }))
            return Effect.fail(new InvalidInput({ message: error.message, param: null }))
          }
          if (Schema.isSchemaError(error)) {
            if (received.response !== undefined) return misread(received.response)
            const { message, param } = schemaProblem(error.issue)
            return Effect.fail(new InvalidInput({ message: `${param ?? "The input"} ${message}.`, param }))
          }
          return Effect.fail(error)
        })
      )
    })
