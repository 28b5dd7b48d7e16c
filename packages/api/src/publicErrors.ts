import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"

const body = <const Type extends string, const Codes extends readonly [string, ...Array<string>]>(type: Type, codes: Codes) => ({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.tag(type),
    code: Schema.Literals(codes),
    /** The field, parameter, header or scope that the error is about. */
    param: Schema.optionalKey(Schema.NullOr(Schema.String)),
    /** The same as the header `x-request-id`. */
    request_id: Schema.optionalKey(Schema.String)
  })
})

/** A failure whose body is exactly the contract's Error object. Subclasses add `_tag` as a field, so it is never encoded. */
const failure =
  <Self>() =>
  <const Type extends string, const Codes extends readonly [string, ...Array<string>]>(identifier: string, httpApiStatus: number, type: Type, codes: Codes) =>
    Schema.Error<Self>(identifier)(body(type, codes), { httpApiStatus })

/** 400: a path or query parameter that the operation does not take as given; `param` names it. */
export class InvalidParameter extends failure<InvalidParameter>()("InvalidParameterError", 400, "invalid_request_error", [
  "invalid_parameter",
  "unknown_parameter"
]) {
  readonly _tag = "InvalidParameter"
}

/** 400: the cursor is not one that this list gave for these filters. */
export class InvalidCursor extends failure<InvalidCursor>()("InvalidCursorError", 400, "invalid_request_error", ["invalid_cursor"]) {
  readonly _tag = "InvalidCursor"
}

/** 400: the body is not JSON, or a member is unknown, missing or wrong; `param` is its path. */
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

/** 402: the organization has made no purchase yet, its billing is suspended, or its balance or spend limit is used up. */
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

/** 404: the organisation has no such record; another organisation's record gives the same answer. */
export class NotFound extends failure<NotFound>()("NotFoundError", 404, "not_found_error", ["not_found"]) {
  readonly _tag = "NotFound"
}

/** 404: a replayed create whose model has been deleted. */
export class ModelDeleted extends failure<ModelDeleted>()("ModelDeletedError", 404, "not_found_error", ["model_deleted"]) {
  readonly _tag = "ModelDeleted"
}

/** 406: a signed receipt was asked for where the installation has no key to sign with. */
export class NotSigned extends failure<NotSigned>()("NotSignedError", 406, "invalid_request_error", ["not_acceptable"]) {
  readonly _tag = "NotSigned"
}

/** 409: the idempotency key stands for other input. */
export class IdempotencyKeyReused extends failure<IdempotencyKeyReused>()("IdempotencyKeyReusedError", 409, "conflict_error", ["idempotency_key_reused"]) {
  readonly _tag = "IdempotencyKeyReused"
}

/** 409: the organisation has a model of that name. */
export class ModelNameTaken extends failure<ModelNameTaken>()("ModelNameTakenError", 409, "conflict_error", ["model_name_taken"]) {
  readonly _tag = "ModelNameTaken"
}

/** 409: no revision of the model was ever activated, so there is nothing to disable or enable. */
export class ModelNotActivated extends failure<ModelNotActivated>()("ModelNotActivatedError", 409, "conflict_error", ["model_not_activated"]) {
  readonly _tag = "ModelNotActivated"
}

/** 409: an object in the cluster is the model's source, and would deploy it again. */
export class ModelManaged extends failure<ModelManaged>()("ModelManagedError", 409, "conflict_error", ["model_managed"]) {
  readonly _tag = "ModelManaged"
}

/** 409: the run is over. */
export class DeploymentFinished extends failure<DeploymentFinished>()("DeploymentFinishedError", 409, "conflict_error", ["deployment_finished"]) {
  readonly _tag = "DeploymentFinished"
}

/** What a preview would refuse with, and a create can know without asking the hub. */
export const RefusedCode = Schema.Literals(["host_class_unknown", "unsupported_architecture", "does_not_fit", "context_too_long"])

/** 422: a create that a preview would refuse outright, known at once; the code and the words are the preview's. */
export class Refused extends failure<Refused>()("RefusedError", 422, "refused_error", RefusedCode.literals) {
  readonly _tag = "Refused"
}

/** 413: the body is larger than the server takes. */
export class BodyTooLarge extends failure<BodyTooLarge>()("BodyTooLargeError", 413, "invalid_request_error", ["body_too_large"]) {
  readonly _tag = "BodyTooLarge"
}

/** 415: the body is not `application/json` in UTF-8, or compressed. */
export class UnsupportedMediaType extends failure<UnsupportedMediaType>()("UnsupportedMediaTypeError", 415, "invalid_request_error", [
  "unsupported_media_type"
]) {
  readonly _tag = "UnsupportedMediaType"
}

/** 500: a fault of the server; its log has the cause under the request id. */
export class Internal extends failure<Internal>()("InternalError", 500, "api_error", ["internal"]) {
  readonly _tag = "Internal"
}

class UnauthorizedBody extends failure<UnauthorizedBody>()("UnauthorizedError", 401, "authentication_error", ["missing_api_key", "invalid_api_key"]) {}

/** 401: no key, or one that is unknown, revoked, expired or of an inactive organisation. `challenge` goes to `WWW-Authenticate`. */
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

/** 429: too many requests of the key or of its organization, or too many keys that do not exist from the caller's address. `retryAfter` in whole seconds, at least 1. */
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

/** 503: the database or the model hub is away. `retryAfter` in whole seconds, at least 1. */
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

/** The Error object of every operation, and of unknown routes and methods. */
export const ErrorObject = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    code: Schema.String,
    param: Schema.optionalKey(Schema.NullOr(Schema.String)),
    request_id: Schema.optionalKey(Schema.String)
  })
}).annotate({ identifier: "Error" })
export type ErrorObject = typeof ErrorObject.Type
