import { type KeyId, type OrgId, RequestId, type Scope, type UserId } from "@seatrial/domain"
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import {
  Internal,
  InvalidIdempotencyKey,
  InvalidParameter,
  MissingScope,
  RateLimitedResponse,
  UnauthorizedResponse,
  UnavailableResponse
} from "./publicErrors.ts"

/**
 * The ID of the current HTTP request: `x-request-id` of every response and `request_id` of every error. It is a
 * reference because the middleware below needs it and is built before the first request. The server sets it for each
 * request.
 */
export const RequestIdentity = Context.Reference<RequestId>("seatrial/RequestIdentity", {
  defaultValue: () => Schema.decodeSync(RequestId)("req_00000000000000000000000000")
})

/** The identity and permissions of the request's API key. */
export class Caller extends Context.Service<
  Caller,
  {
    readonly keyId: KeyId
    readonly orgId: OrgId
    readonly orgSlug: string
    readonly userId: UserId
    readonly scopes: ReadonlySet<Scope>
    readonly firstPurchase: boolean
    readonly spendLimited: boolean
  }
>()("seatrial/Caller") {}

const bearer = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotateMerge(
    OpenApi.annotations({ format: "seatrial_…", description: "An API key of the organization: `Authorization: Bearer seatrial_…`." })
  )
)

/** Checks the key, the rate limit and the scopes, in this order, before the rest of the request is read. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller }>()("seatrial/Authorization", {
  security: { bearer },
  error: [UnauthorizedResponse, MissingScope, RateLimitedResponse]
}) {}

/** Turns undecodable parameters and defects into public errors, so that no internals reach the caller. */
export class Boundary extends HttpApiMiddleware.Service<Boundary>()("seatrial/Boundary", {
  error: [InvalidParameter, Internal, UnavailableResponse]
}) {}

/** Distinguishes a missing `Idempotency-Key` from a malformed one. */
export class IdempotencyHeader extends HttpApiMiddleware.Service<IdempotencyHeader>()("seatrial/IdempotencyHeader", {
  error: InvalidIdempotencyKey
}) {}
