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
 * The id of this exchange: the header `x-request-id` of every answer, and `request_id` of every error. A reference, since the middleware below needs it and is
 * built before any exchange; the server sets it for each.
 */
export const RequestIdentity = Context.Reference<RequestId>("seatrial/RequestIdentity", {
  defaultValue: () => Schema.decodeSync(RequestId)("req_00000000000000000000000000")
})

/** Whom the request's API key stands for. */
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

/** Key, rate and scope, in this order, before anything else of the request is looked at. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller }>()("seatrial/Authorization", {
  security: { bearer },
  error: [UnauthorizedResponse, MissingScope, RateLimitedResponse]
}) {}

/** Turns undecodable parameters and faults into public errors, so that nothing internal is shown. */
export class Boundary extends HttpApiMiddleware.Service<Boundary>()("seatrial/Boundary", {
  error: [InvalidParameter, Internal, UnavailableResponse]
}) {}

/** Tells a missing `Idempotency-Key` from a malformed one. */
export class IdempotencyHeader extends HttpApiMiddleware.Service<IdempotencyHeader>()("seatrial/IdempotencyHeader", {
  error: InvalidIdempotencyKey
}) {}
