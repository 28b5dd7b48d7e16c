import type { Scope } from "@seatrial/domain"
import { Context } from "effect"
import { OpenApi } from "effect/http-api"

/** Sets of scopes, any one of which opens an endpoint; enforced by `Authorization`. */
export const RequiredScopes = Context.Reference<ReadonlyArray<ReadonlyArray<Scope>>>("seatrial/RequiredScopes", { defaultValue: () => [] })

/** The token buckets that a call of an endpoint draws from. */
export type RateClass = "read" | "preview" | "write"
export const RateClassOf = Context.Reference<RateClass>("seatrial/RateClass", { defaultValue: () => "read" })

/** What stands beside an endpoint: the scopes that open it (any one of the sets), and its rate. */
export const policy = (rate: RateClass, ...anyOf: ReadonlyArray<ReadonlyArray<Scope>>): Context.Context<never> =>
  Context.empty().pipe(
    Context.add(RequiredScopes, anyOf),
    Context.add(RateClassOf, rate),
    // OpenAPI 3.1 lets a requirement of a bearer scheme list the roles that are needed.
    Context.merge(OpenApi.annotations({ transform: (operation) => ({ ...operation, security: anyOf.map((scopes) => ({ bearer: scopes })) }) }))
  )
