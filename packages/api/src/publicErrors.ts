import { optionalNullable } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"

const body = <const Type extends string, const Codes extends readonly [string, ...Array<string>]>(type: Type, codes: Codes) => ({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.tag(type),
    code: Schema.Literals(codes),
    /** The field, parameter, header or scope that the error is about. */
    param: optionalNullable(Schema.String),
    /** Equal to the header `x-request-id`. */
    request_id: Schema.optionalKey(Schema.String)
  })
})

/**
 * A failure whose body is exactly the contract's Error object. Subclasses add `_tag` as a class field, so that it is
 * never encoded.
 */
const failure =
  <Self>() =>
  <const Type extends string, const Codes extends readonly [string, ...Array<string>]>(identifier: string, httpApiStatus: number, type: Type, codes: Codes) =>
    Schema.Error<Self>(identifier)(body(type, codes), { httpApiStatus })

/** 400: a path or query parameter is unknown or invalid. `param` names it. */
export class InvalidParameter extends failure<InvalidParameter>()("InvalidParameterError", 400, "invalid_request_error", [
  "invalid_parameter",
  "unknown_parameter"
]) {
  readonly _tag = "InvalidParameter"
}

/** 400: the cursor does not come from this list with these filters. */
export class InvalidCursor extends failure<InvalidCursor>()("InvalidCursorError", 400, "invalid_request_error", ["invalid_cursor"]) {
  readonly _tag = "InvalidCursor"
}

/** 400: the body is not JSON, or a member is unknown, missing or invalid. `param` is the path of the member. */
export class InvalidBody extends failure<InvalidBody>()("InvalidBodyError", 400, "invalid_request_error", ["invalid_body"]) {
  readonly _tag = "InvalidBody"
}

/** 400: the header `Idempotency-Key` is missing or malformed. */
export class InvalidIdempotencyKey extends failure<InvalidIdempotencyKey>()("InvalidIdempotencyKeyError", 400, "invalid_request_error", [
  "idempotency_key_required",
  "idempotency_key_invalid"
]) {
  readonly _tag = "InvalidIdempotencyKey"
}

/**
 * 402: the organization has not made a purchase, its billing is suspended, or its balance or spend limit is used up.
 */
export class FirstPurchaseRequired extends failure<FirstPurchaseRequired>()("FirstPurchaseRequiredError", 402, "billing_error", [
  "first_purchase_required",
  "insufficient_balance",
  "spend_limit_reached"
]) {
  readonly _tag = "FirstPurchaseRequired"
}

/** 403: the key lacks the scope in `param`. */
export class MissingScope extends failure<MissingScope>()("MissingScopeError", 403, "permission_error", ["missing_scope"]) {
  readonly _tag = "MissingScope"
}

/** 404: the organization has no such record. A record of another organization gets the same response. */
export class NotFound extends failure<NotFound>()("NotFoundError", 404, "not_found_error", ["not_found"]) {
  readonly _tag = "NotFound"
}

/** 404: the model of a replayed create has been deleted. */
export class ModelDeleted extends failure<ModelDeleted>()("ModelDeletedError", 404, "not_found_error", ["model_deleted"]) {
  readonly _tag = "ModelDeleted"
}

/** 406: the caller requested a signed receipt, but the installation has no signing key. */
export class NotSigned extends failure<NotSigned>()("NotSignedError", 406, "invalid_request_error", ["not_acceptable"]) {
  readonly _tag = "NotSigned"
}

/** 409: the idempotency key was already used with different input. */
export class IdempotencyKeyReused extends failure<IdempotencyKeyReused>()("IdempotencyKeyReusedError", 409, "conflict_error", ["idempotency_key_reused"]) {
  readonly _tag = "IdempotencyKeyReused"
}

/** 409: the organization already has a model with this name. */
export class ModelNameTaken extends failure<ModelNameTaken>()("ModelNameTakenError", 409, "conflict_error", ["model_name_taken"]) {
  readonly _tag = "ModelNameTaken"
}

/** 409: no revision of the model has been activated, so it cannot be disabled or enabled. */
export class ModelNotActivated extends failure<ModelNotActivated>()("ModelNotActivatedError", 409, "conflict_error", ["model_not_activated"]) {
  readonly _tag = "ModelNotActivated"
}

/**
 * 409: a ModelDeployment in the cluster manages the model: it would deploy it again, or sets the number of its engines.
 */
export class ModelManaged extends failure<ModelManaged>()("ModelManagedError", 409, "conflict_error", ["model_managed"]) {
  readonly _tag = "ModelManaged"
}

/** 409: the run has already ended. */
export class DeploymentFinished extends failure<DeploymentFinished>()("DeploymentFinishedError", 409, "conflict_error", ["deployment_finished"]) {
  readonly _tag = "DeploymentFinished"
}

/** The refusal codes of a preview that a create can detect without the hub. */
export const RefusedCode = Schema.Literals(["host_class_unknown", "unsupported_architecture", "does_not_fit", "context_too_long"])

/** 422: a preview of this create would be refused. It returns the code and message of the preview. */
export class Refused extends failure<Refused>()("RefusedError", 422, "refused_error", RefusedCode.literals) {
  readonly _tag = "Refused"
}

/** 413: the body is larger than the server accepts. */
export class BodyTooLarge extends failure<BodyTooLarge>()("BodyTooLargeError", 413, "invalid_request_error", ["body_too_large"]) {
  readonly _tag = "BodyTooLarge"
}

/** 415: the body is not `application/json` in UTF-8, or it is compressed. */
export class UnsupportedMediaType extends failure<UnsupportedMediaType>()("UnsupportedMediaTypeError", 415, "invalid_request_error", [
  "unsupported_media_type"
]) {
  readonly _tag = "UnsupportedMediaType"
}

/** 500: the server failed. Its log contains the cause under the request ID. */
export class Internal extends failure<Internal>()("InternalError", 500, "api_error", ["internal"]) {
  readonly _tag = "Internal"
}

class UnauthorizedBody extends failure<UnauthorizedBody>()("UnauthorizedError", 401, "authentication_error", ["missing_api_key", "invalid_api_key"]) {}

/**
 * 401: the key is missing, unknown, revoked or expired, or its organization is inactive. `challenge`: value of
 * `WWW-Authenticate`.
 */
export class Unauthorized extends Schema.TaggedError<Unauthorized>("Unauthorized")("Unauthorized", {
  ...UnauthorizedBody.fields,
  challenge: Schema.String
}) {}

export const UnauthorizedResponse = Unauthorized.pipe(
  HttpApiSchema.encodeToWithHeaders(
    { body: UnauthorizedBody, headers: { "www-authenticate": Schema.String } },
    {
      decode: ({ body, headers }) => new Unauthorized({ error: body.error, challenge: headers["www-authenticate"] }),
      encode: ({ challenge, error }) => ({ body: new UnauthorizedBody({ error }), headers: { "www-authenticate": challenge } })
    }
  )
)

class RateLimitedBody extends failure<RateLimitedBody>()("RateLimitedError", 429, "rate_limit_error", [
  "key_rate_limited",
  "org_rate_limited",
  "address_rate_limited"
]) {}

/**
 * 429: a rate limit of the key, of its organization or of unknown keys from one address is exceeded. `retryAfter`:
 * whole seconds, at least 1.
 */
export class RateLimited extends Schema.TaggedError<RateLimited>("RateLimited")("RateLimited", { ...RateLimitedBody.fields, retryAfter: Schema.Int }) {}

export const RateLimitedResponse = RateLimited.pipe(
  HttpApiSchema.encodeToWithHeaders(
    { body: RateLimitedBody, headers: { "retry-after": Schema.Int } },
    {
      decode: ({ body, headers }) => new RateLimited({ error: body.error, retryAfter: headers["retry-after"] }),
      encode: ({ error, retryAfter }) => ({ body: new RateLimitedBody({ error }), headers: { "retry-after": retryAfter } })
    }
  )
)

class UnavailableBody extends failure<UnavailableBody>()("UnavailableError", 503, "api_error", ["unavailable"]) {}

/** 503: the database or the model hub is unavailable. `retryAfter`: whole seconds, at least 1. */
export class Unavailable extends Schema.TaggedError<Unavailable>("Unavailable")("Unavailable", { ...UnavailableBody.fields, retryAfter: Schema.Int }) {}

export const UnavailableResponse = Unavailable.pipe(
  HttpApiSchema.encodeToWithHeaders(
    { body: UnavailableBody, headers: { "retry-after": Schema.Int } },
    {
      decode: ({ body, headers }) => new Unavailable({ error: body.error, retryAfter: headers["retry-after"] }),
      encode: ({ error, retryAfter }) => ({ body: new UnavailableBody({ error }), headers: { "retry-after": retryAfter } })
    }
  )
)

/** The contract's Error object. Operations, unknown routes and unknown methods all return it. */
export const ErrorObject = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    code: Schema.String,
    param: optionalNullable(Schema.String),
    request_id: Schema.optionalKey(Schema.String)
  })
}).annotate({ identifier: "Error" })
export type ErrorObject = typeof ErrorObject.Type
