import type {
  BodyTooLarge,
  DeploymentFinished,
  FirstPurchaseRequired,
  IdempotencyKeyReused,
  Internal,
  InvalidBody,
  InvalidCursor,
  InvalidIdempotencyKey,
  InvalidParameter,
  MissingScope,
  ModelDeleted,
  ModelManaged,
  ModelNameTaken,
  ModelNotActivated,
  NotFound,
  NotSigned,
  RateLimited,
  Refused,
  Unauthorized,
  Unavailable,
  UnsupportedMediaType
} from "@seatrial/api"
import type { ClientFailure } from "./failures.ts"

/** An error of the contract: the server refused the request or could not execute it. */
export type PublicError =
  | BodyTooLarge
  | DeploymentFinished
  | FirstPurchaseRequired
  | IdempotencyKeyReused
  | Internal
  | InvalidBody
  | InvalidCursor
  | InvalidIdempotencyKey
  | InvalidParameter
  | MissingScope
  | ModelDeleted
  | ModelManaged
  | ModelNameTaken
  | ModelNotActivated
  | NotFound
  | NotSigned
  | RateLimited
  | Refused
  | Unauthorized
  | Unavailable
  | UnsupportedMediaType

const statuses: Readonly<Record<PublicError["_tag"], number>> = {
  BodyTooLarge: 413,
  DeploymentFinished: 409,
  FirstPurchaseRequired: 402,
  IdempotencyKeyReused: 409,
  Internal: 500,
  InvalidBody: 400,
  InvalidCursor: 400,
  InvalidIdempotencyKey: 400,
  InvalidParameter: 400,
  MissingScope: 403,
  ModelDeleted: 404,
  ModelManaged: 409,
  ModelNameTaken: 409,
  ModelNotActivated: 409,
  NotFound: 404,
  NotSigned: 406,
  RateLimited: 429,
  Refused: 422,
  Unauthorized: 401,
  Unavailable: 503,
  UnsupportedMediaType: 415
}

interface Details {
  readonly status: number | null
  readonly code: string
  readonly param: string | null
  readonly requestId: string | null
  /** Seconds from the server's `Retry-After`; null without one. */
  readonly retryAfter: number | null
}

/** The methods of `createClient` reject with an `ApiError`, a `ConnectionError` or an `InputError`. */
export class SeatrialError extends Error implements Details {
  readonly status: number | null
  readonly code: string
  readonly param: string | null
  readonly requestId: string | null
  readonly retryAfter: number | null

  constructor(message: string, { code, param, requestId, retryAfter, status }: Details, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.status = status
    this.code = code
    this.param = param
    this.requestId = requestId
    this.retryAfter = retryAfter
  }
}

/** The server responded with an error. `code` and `param` are the contract's. */
export class ApiError extends SeatrialError {}

/**
 * The server could not be reached, or its response could not be understood. `code`: `unreachable`, `not_seatrial` or
 * `version_skew`.
 */
export class ConnectionError extends SeatrialError {}

/**
 * The input does not match the contract; nothing was sent. `code`: `invalid_input`. `param`: path of the invalid value.
 */
export class InputError extends SeatrialError {}

const connectionCodes: Readonly<Record<ClientFailure["_tag"], string>> = {
  Unreachable: "unreachable",
  NotSeatrial: "not_seatrial",
  VersionSkew: "version_skew",
  InvalidInput: "invalid_input"
}

/** Converts the typed error of an effect to an exception. */
export const toSeatrialError = (failure: PublicError | ClientFailure): SeatrialError => {
  if ("error" in failure) {
    const { code, message, param, request_id } = failure.error
    const retryAfter = "retryAfter" in failure ? failure.retryAfter : null
    return new ApiError(message, { status: statuses[failure._tag], code, param: param ?? null, requestId: request_id ?? null, retryAfter }, { cause: failure })
  }
  const Kind = failure._tag === "InvalidInput" ? InputError : ConnectionError
  return new Kind(
    failure.message,
    {
      status: "status" in failure ? failure.status : null,
      code: connectionCodes[failure._tag],
      param: "param" in failure ? failure.param : null,
      requestId: "requestId" in failure ? failure.requestId : null,
      retryAfter: "retryAfter" in failure ? (failure.retryAfter ?? null) : null
    },
    { cause: failure }
  )
}
