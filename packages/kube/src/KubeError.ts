import { Data, Option, Schema } from "effect"

/**
 * What the API server, or the way to it, answered.
 * `Conflict` is 409 (also AlreadyExists), `Gone` 410, `Retryable` 429, 5xx and lost connections,
 * `Denied` 401 and 403, `Invalid` 400, 415 and 422, `NotFound` 404.
 */
export class KubeError extends Data.TaggedError("KubeError")<{
  readonly reason: "NotFound" | "Conflict" | "Gone" | "Retryable" | "Denied" | "Invalid"
  readonly message: string
  readonly status?: number
  /** From `Retry-After`, in milliseconds. */
  readonly retryAfter?: number
  /** The `reason` of the server's Status, for example `AlreadyExists`. Absent where the answer was no Status. */
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

/** Milliseconds until the time that a `Retry-After` names, as seconds or as an HTTP date; undefined where it says nothing. */
const parseRetryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined || header.trim() === "") return undefined
  const seconds = Number(header)
  if (Number.isFinite(seconds)) return seconds >= 0 ? seconds * 1000 : undefined
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

const make = (status: number, decoded: Option.Option<typeof Status.Type>, fallback: string, retryAfterHeader: number | undefined): KubeError => {
  const said = Option.getOrUndefined(decoded)
  const seconds = said?.details?.retryAfterSeconds
  const retryAfter = retryAfterHeader ?? (seconds === undefined ? undefined : seconds * 1000)
  return new KubeError({
    reason: reasonOf(status),
    status,
    message: said?.message ?? fallback,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(said === undefined ? {} : { statusReason: said.reason ?? "" })
  })
}

/** The error that an HTTP answer with a status of 300 or more means. `now` is in epoch milliseconds. */
export const fromAnswer = (status: number, body: string, retryAfter: string | undefined, now: number): KubeError =>
  make(status, decodeStatusText(body), `HTTP ${status}: ${body.slice(0, 300)}`, parseRetryAfter(retryAfter, now))

/** The error that the object of an ERROR event means. */
export const fromStatusObject = (object: unknown): KubeError => {
  const decoded = decodeStatus(object)
  const code = Option.getOrUndefined(decoded)?.code ?? 500
  return make(code, decoded, "the watch ended in an error", undefined)
}
