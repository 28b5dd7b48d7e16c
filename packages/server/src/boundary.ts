import { Boundary, IdempotencyHeader, RequestIdentity } from "@seatrial/api"
import { Cause, Effect, Layer, Predicate, type SchemaIssue } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { SqlError } from "effect/sql"
import { inputProblem } from "./inputProblem.ts"
import { idempotencyKeyInvalid, idempotencyKeyRequired, internal, invalidParameter, unavailable, unknownParameter } from "./publicErrors.ts"

/** SQLSTATEs of a server that is starting, stopping, out of resources or not the primary any more: others than faults of a statement. */
const isAwayState = (cause: unknown): boolean => Predicate.hasProperty(cause, "code") && typeof cause.code === "string" && /^(57P|53|25006)/.test(cause.code)

/** Why the database cannot serve for now, or null where the defect is of another kind. Whatever keeps a connection from being made is no fault of a statement. */
export const awayMessage = (defect: unknown): string | null => {
  if (!SqlError.isSqlError(defect)) return null
  const { _tag, cause, operation } = defect.reason
  if (_tag === "StatementTimeoutError" || _tag === "LockTimeoutError") return "The database did not finish in time."
  return _tag === "ConnectionError" || _tag === "AuthenticationError" || operation === "connect" || isAwayState(cause) ? "The database is away." : null
}

/** Logs what went wrong under the request's id and tells the caller no more than that it did. */
const fault = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, operation: string) {
  const id = yield* RequestIdentity
  const away = cause.reasons.map((reason) => (reason._tag === "Die" ? awayMessage(reason.defect) : null)).find((message) => message !== null)
  if (away !== undefined) {
    yield* Effect.logWarning(away).pipe(Effect.annotateLogs({ request_id: id, operation }))
    return yield* unavailable(away, 1)
  }
  yield* Effect.logError(cause).pipe(Effect.annotateLogs({ request_id: id, operation }))
  return yield* internal
})

const refuseParameter = Effect.fnUntraced(function* (issue: SchemaIssue.Issue) {
  const { message, param, unexpected } = inputProblem(issue)
  // What is wrong with a repeated parameter is said of one of its values.
  const name = (param ?? "").replace(/\[\d+\]$/, "")
  if (unexpected) return yield* unknownParameter(name)
  const { url } = yield* HttpServerRequest.HttpServerRequest
  const given = new URLSearchParams(url.split("?")[1]).getAll(name).length
  return yield* invalidParameter(name, given > 1 ? `${name} is given more than once.` : `${name} ${message}.`)
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
