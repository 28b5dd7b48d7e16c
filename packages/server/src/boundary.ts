import { Boundary, IdempotencyHeader, RequestIdentity } from "@seatrial/api"
import { schemaProblem } from "@seatrial/domain"
import { Cause, Effect, Layer, Predicate, type SchemaIssue } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { SqlError } from "effect/sql"
import { idempotencyKeyInvalid, idempotencyKeyRequired, internal, invalidParameter, unavailable, unknownParameter } from "./publicErrors.ts"

/** SQLSTATEs of a server that is starting, stopping, out of resources or no longer the primary. */
const isUnavailableState = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && /^(57P|53|25006)/.test(cause.code)

/**
 * Why the database is temporarily unavailable, or null for any other defect. Every failure to connect counts as
 * unavailable.
 */
export const unavailableMessage = (defect: unknown): string | null => {
  if (!SqlError.isSqlError(defect)) return null
  const { _tag, cause, operation } = defect.reason
  if (_tag === "StatementTimeoutError" || _tag === "LockTimeoutError") return "The database did not finish in time."
  return _tag === "ConnectionError" || _tag === "AuthenticationError" || operation === "connect" || isUnavailableState(cause)
    ? "The database is unavailable."
    : null
}

/** Logs the cause with the request ID. The caller learns only that the request failed. */
const fault = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, operation: string) {
  const id = yield* RequestIdentity
  const outage = cause.reasons.map((reason) => (reason._tag === "Die" ? unavailableMessage(reason.defect) : null)).find((message) => message !== null)
  if (outage !== undefined) {
    yield* Effect.logWarning(outage).pipe(Effect.annotateLogs({ request_id: id, operation }))
    return yield* unavailable(outage, 1)
  }
  yield* Effect.logError(cause).pipe(Effect.annotateLogs({ request_id: id, operation }))
  return yield* internal
})

const refuseParameter = Effect.fnUntraced(function* (issue: SchemaIssue.Issue) {
  const { message, param, unexpected } = schemaProblem(issue)
  // The issue of a repeated parameter names one of its values, such as `limit[1]`.
  const name = (param ?? "").replace(/\[\d+\]$/, "")
  if (unexpected) return yield* unknownParameter(name)
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const occurrences = new URLSearchParams(url.split("?")[1]).getAll(name).length
  return yield* invalidParameter(name, occurrences > 1 ? `${name} is given more than once.` : `${name} ${message}.`)
})

export const layerBoundary = Layer.succeed(
  Boundary,
  Boundary.of((handled, { endpoint, group }) =>
    Effect.catchCause(
      handled,
      Effect.fnUntraced(function* (cause) {
        const operation = `${group.identifier}.${endpoint.identifier}`
        if (Cause.hasDies(cause)) return yield* fault(cause, operation)
        const failed = cause.reasons.find(Cause.isFailReason)?.error
        if (!HttpApiError.HttpApiSchemaError.is(failed)) return yield* Effect.failCause(cause)
        if (failed.kind === "Body" || failed.kind === "ResponseHeaders") return yield* fault(cause, operation)
        return yield* refuseParameter(failed.cause.issue)
      })
    )
  )
)

export const layerIdempotencyHeader = Layer.succeed(
  IdempotencyHeader,
  IdempotencyHeader.of((handled) =>
    Effect.catch(
      handled,
      Effect.fnUntraced(function* (failed) {
        if (!HttpApiError.HttpApiSchemaError.is(failed) || failed.kind !== "Headers") return yield* Effect.fail(failed)
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        return yield* headers["idempotency-key"] === undefined ? idempotencyKeyRequired : idempotencyKeyInvalid
      })
    )
  )
)
