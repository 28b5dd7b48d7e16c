import { Data, Option, Schema } from "effect"

/**
 * An error of the API server or of the connection to it. `Conflict`: 409, including AlreadyExists. `Gone`: 410.
 * `Retryable`: 429, 5xx and lost connections. `Denied`: 401 and 403. `Invalid`: 400, 415 and 422. `NotFound`: 404.
 * `TooLarge`: the response is larger than the client accepts.
 */
export class KubeError extends Data.TaggedError("KubeError")<{
  readonly reason: "NotFound" | "Conflict" | "Gone" | "Retryable" | "Denied" | "Invalid" | "TooLarge"
  readonly message: string
  readonly status?: number
  /** Milliseconds, from `Retry-After`. */
  readonly retryAfter?: number
  /**
   * The `reason` of the server's Status, for example `AlreadyExists`; `Timeout` if no response came in time. Absent if
   * the response was not a Status.
   */
  readonly statusReason?: string
}> {}

const Status = Schema.Struct({
  kind: Schema.Literal("Status"),
  message: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.Number),
  details: Schema.optionalKey(Schema.Struct({ retryAfterSeconds: Schema.optionalKey(Schema.Number) }))
})
const decodeStatus = Schema.decodeUnknownOption(Status)
const decodeStatusText = Schema.decodeUnknownOption(Schema.fromJsonString(Status))

const reasonOf = (status: number): KubeError["reason"] => {
  switch (status) {
    case 401:
    case 403:
      return "Denied"
    case 404:
      return "NotFound"
    case 409:
      return "Conflict"
    case 410:
      return "Gone"
    case 408:
    case 429:
      return "Retryable"
    default:
      return status >= 500 ? "Retryable" : "Invalid"
  }
}

/** Milliseconds until the time in a `Retry-After` header (seconds or an HTTP date); undefined if it is invalid. */
const parseRetryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined || header.trim() === "") return undefined
  const seconds = Number(header)
  if (Number.isFinite(seconds)) return seconds >= 0 ? seconds * 1000 : undefined
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

const make = (status: number, decoded: Option.Option<typeof Status.Type>, fallback: string, retryAfterHeader: number | undefined): KubeError => {
  const body = Option.getOrUndefined(decoded)
  const seconds = body?.details?.retryAfterSeconds
  const retryAfter = retryAfterHeader ?? (seconds === undefined ? undefined : seconds * 1000)
  return new KubeError({
    reason: reasonOf(status),
    status,
    message: body?.message ?? fallback,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(body === undefined ? {} : { statusReason: body.reason ?? "" })
  })
}

/** The error for an HTTP response with a status of 300 or more. `now` is in Unix milliseconds. */
export const fromAnswer = (status: number, body: string, retryAfter: string | undefined, now: number): KubeError =>
  make(status, decodeStatusText(body), `HTTP ${status}: ${body.slice(0, 300)}`, parseRetryAfter(retryAfter, now))

/** The error for the object of an ERROR event. */
export const fromStatusObject = (object: unknown): KubeError => {
  const decoded = decodeStatus(object)
  const code = Option.getOrUndefined(decoded)?.code ?? 500
  return make(code, decoded, "the watch ended with an error", undefined)
}
