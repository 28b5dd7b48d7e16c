import type { KeyId, OrgId, RequestId, Scope, UserId } from "@seatrial/domain"
import { Context } from "effect"
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

/** The id of this exchange: the header `x-request-id` of every answer, and `request_id` of every error. */
export class RequestIdentity extends Context.Service<RequestIdentity, { readonly id: RequestId }>()("seatrial/RequestIdentity") {}

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
  }
>()("seatrial/Caller") {}

const bearer = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotateMerge(
    OpenApi.annotations({ format: "seatrial_…", description: "An API key of the organisation: `Authorization: Bearer seatrial_…`." })
  )
)

/** Key, rate and scope, in this order, before anything else of the request is looked at. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: Caller; requires: RequestIdentity }>()("seatrial/Authorization", {
  security: { bearer },
  error: [UnauthorizedResponse, MissingScope, RateLimitedResponse]
}) {}

/** Turns undecodable parameters and faults into public errors, so that nothing internal is shown. */
export class Boundary extends HttpApiMiddleware.Service<Boundary, { requires: RequestIdentity }>()("seatrial/Boundary", {
  error: [InvalidParameter, Internal, UnavailableResponse]
}) {}

/** Tells a missing `Idempotency-Key` from a malformed one. */
export class IdempotencyHeader extends HttpApiMiddleware.Service<IdempotencyHeader, { requires: RequestIdentity }>()("seatrial/IdempotencyHeader", {
  error: InvalidIdempotencyKey
}) {}
