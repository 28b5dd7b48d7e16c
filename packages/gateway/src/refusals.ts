import type { ServerResponse } from "node:http"
import { Data } from "effect"
import { SqlError } from "effect/sql"
import type { Dialect } from "./dialects/Dialect.ts"

/** An error of a request that no engine answered, as the caller and the record see it. */
export class Refusal extends Data.TaggedError("Refusal")<{
  readonly status: number
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param: string | null
  /** Seconds, 1 to 60. */
  readonly retryAfter?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces `message` and `param` in the request's record if they repeat a name that the caller chose. */
  readonly recorded?: { readonly message: string; readonly param: string | null }
}> {}

const refusal =
  (status: number, type: string, code: string) =>
  (message: string, param: string | null = null): Refusal =>
    new Refusal({ status, type, code, message, param })

const invalid = (code: string) => refusal(400, "invalid_request_error", code)

export const invalidBody = invalid("invalid_body")
export const invalidParameter = invalid("invalid_parameter")
export const unknownParameter = invalid("unknown_parameter")
export const unsupportedParameter = invalid("unsupported_parameter")
export const unsupportedValue = invalid("unsupported_value")
export const unsupportedEndpoint = invalid("unsupported_endpoint")
/** Anthropic's own code: its tool runners then send the complete conversation instead of a thread. */
export const threadUnsupported = invalid("thread_unsupported_request")(
  "Conversations are not stored. Send the complete conversation, without thread.",
  "thread"
)
export const contextLengthExceeded = invalid("context_length_exceeded")
export const bodyTooLarge = refusal(413, "invalid_request_error", "body_too_large")
export const unsupportedMediaType = refusal(415, "invalid_request_error", "unsupported_media_type")
const listedModels = "GET /v1/models lists your organization's models, named <organization>/<model>."
/** Usually the organization is missing in the name. The record does not repeat the name, because it may be any text. */
export const modelNotFound = (name: string): Refusal =>
  new Refusal({
    status: 404,
    type: "not_found_error",
    code: "model_not_found",
    message: `The model ${name.slice(0, 128)} does not exist, or your organization may not use it. ${listedModels}`,
    param: "model",
    recorded: { message: `The requested model does not exist, or your organization may not use it. ${listedModels}`, param: "model" }
  })
const payment = (code: string, message: string) => refusal(402, "billing_error", code)(message)
export const insufficientBalance = payment(
  "insufficient_balance",
  "The organization's prepaid balance is used up. Ask an administrator to record a purchase or to grant a credit."
)
export const billingSuspended = payment("billing_suspended", "The organization's billing is suspended. Ask an administrator to resume it.")
const limitReached = (of: string, period: "day" | "month") =>
  payment(
    "spend_limit_reached",
    `The ${period === "day" ? "daily" : "monthly"} spend limit of the ${of} is used up. Wait until the next ${period} begins (UTC), or ask an administrator to raise the limit.`
  )
export const spendLimitReached = {
  organization: { day: limitReached("organization", "day"), month: limitReached("organization", "month") },
  key: { day: limitReached("key", "day"), month: limitReached("key", "month") }
} as const
export const notFound = refusal(404, "not_found_error", "not_found")
export const missingScope = (scope: string) => refusal(403, "permission_error", "missing_scope")(`This operation needs the scope ${scope}.`, scope)

export const methodNotAllowed = (method: string, allow: string): Refusal =>
  new Refusal({
    status: 405,
    type: "invalid_request_error",
    code: "method_not_allowed",
    message: `${method} is not supported on this path. Use ${allow}.`,
    param: null,
    headers: { allow }
  })

const authentication = (code: string, message: string) =>
  new Refusal({ status: 401, type: "authentication_error", code, message, param: null, headers: { "www-authenticate": 'Bearer realm="seatrial"' } })
export const missingApiKey = authentication("missing_api_key", "Send an API key in the header `Authorization: Bearer <API_KEY>`.")
export const invalidApiKey = authentication(
  "invalid_api_key",
  "The API key is not valid: it is unknown, revoked or expired, or its organization is not active. Send a valid key."
)

/** The key was valid when the request was admitted. */
export const keyEnded = authentication(
  "api_key_ended",
  "The API key was revoked or has expired, or its organization was suspended, while the request was in progress. Send a valid key."
)

/** Clients ignore or misread values that are not whole seconds up to one minute. */
const later = (status: number, type: string, code: string, message: string, retryAfter: number) =>
  new Refusal({ status, type, code, message, param: null, retryAfter: Math.min(60, Math.max(1, Math.ceil(retryAfter))) })
export const addressRateLimited = (retryAfter: number): Refusal =>
  later(
    429,
    "rate_limit_error",
    "address_rate_limited",
    "Too many invalid API keys were sent from your address. Check the key, or try again later.",
    retryAfter
  )
export const keyRateLimited = (retryAfter: number): Refusal =>
  later(429, "rate_limit_error", "key_rate_limited", "The key sends too many requests. Send fewer requests per second.", retryAfter)
export const orgRateLimited = (retryAfter: number): Refusal =>
  later(429, "rate_limit_error", "org_rate_limited", "The organization sends too many requests. Send fewer requests per second.", retryAfter)
export const keyConcurrencyLimited = later(
  429,
  "rate_limit_error",
  "key_concurrency_limited",
  "The key has too many requests in progress. Wait until some of them have ended.",
  1
)
export const orgConcurrencyLimited = later(
  429,
  "rate_limit_error",
  "org_concurrency_limited",
  "The organization has too many requests in progress. Wait until some of them have ended.",
  1
)
/**
 * Why a starting engine may never become ready: the start has taken much longer than usual, in seconds; or the engine
 * has failed repeatedly and is started again in `next` seconds.
 */
type DoubtfulStart = { readonly waited: number; readonly usual: number } | { readonly ends: number; readonly next: number | null }

const doubtOf = (doubt: DoubtfulStart): string => {
  if ("waited" in doubt) {
    return `The model's engine has been starting for ${doubt.waited} seconds (usually ${doubt.usual}) and may be failing. Try again later, or ask the owner of the model.`
  }
  const next = doubt.next === null ? "It is starting again" : `It starts again in ${doubt.next} seconds`
  return `The model's engine does not start: it failed ${doubt.ends} ${doubt.ends === 1 ? "time" : "times"} during startup. ${next}. Try again later, or ask the owner of the model.`
}

/** `retryAfter`: seconds until the engine may be ready. */
export const modelStarting = (retryAfter: number, doubt?: DoubtfulStart): Refusal => {
  const message = doubt === undefined ? "The model has no ready engine yet. Try again shortly." : doubtOf(doubt)
  return later(503, "api_error", "model_starting", message, retryAfter)
}
export const noCapacity = later(503, "api_error", "no_capacity", "No GPUs are free for the model's engine. Try again later.", 60)
export const modelOverloaded = later(503, "api_error", "model_overloaded", "The model's engine is at capacity. Try again shortly.", 2)
export const unavailable = later(503, "api_error", "unavailable", "The service cannot process the request now. Try again shortly.", 2)
export const engineFailed = later(
  502,
  "api_error",
  "engine_failed",
  "The engine failed to answer. Try again. If it fails again, ask the owner of the model.",
  1
)
export const engineTimeout = new Refusal({
  status: 504,
  type: "api_error",
  code: "engine_timeout",
  message: "The engine did not answer in time. Send a shorter prompt, or request a shorter answer.",
  param: null,
  headers: { "x-should-retry": "false" }
})
export const clientClosed = new Refusal({ status: 499, type: "api_error", code: "client_closed_request", message: "The caller disconnected.", param: null })
export const internal = refusal(500, "api_error", "internal")("An internal error occurred. Send the request ID to support.")

/** The error for a defect: whether the database is unavailable, and no other details. */
export const faultOf = (defect: unknown): Refusal => (SqlError.isSqlError(defect) ? unavailable : internal)

/** Answers with the error in the format of a dialect, or closes the connection if the response has begun. */
export const writeRefusal = (response: ServerResponse, error: Refusal, requestId: string, { errorBody }: Pick<Dialect, "errorBody">): void => {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const body = errorBody(error, requestId)
  for (const [name, value] of Object.entries(error.headers ?? {})) response.setHeader(name, value)
  if (error.retryAfter !== undefined) response.setHeader("retry-after", error.retryAfter)
  response.writeHead(error.status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
  response.end(body)
}
