import type { Scope } from "@seatrial/domain"
import { Context } from "effect"
import { OpenApi } from "effect/http-api"

/** Sets of scopes. A key needs all scopes of at least one set. `Authorization` enforces this. */
export const RequiredScopes = Context.Reference<ReadonlyArray<ReadonlyArray<Scope>>>("seatrial/RequiredScopes", { defaultValue: () => [] })

/** The group of token buckets that a call of an endpoint draws from. */
export type RateClass = "read" | "preview" | "write"
export const RateClassOf = Context.Reference<RateClass>("seatrial/RateClass", { defaultValue: () => "read" })

/** Annotations of an endpoint: its rate class, and the sets of scopes of which a key needs one. */
export const policy = (rate: RateClass, ...anyOf: ReadonlyArray<ReadonlyArray<Scope>>): Context.Context<never> =>
  Context.empty().pipe(
    Context.add(RequiredScopes, anyOf),
    Context.add(RateClassOf, rate),
    // OpenAPI 3.1 allows a security requirement of a bearer scheme to list the required roles.
    Context.merge(OpenApi.annotations({ transform: (operation) => ({ ...operation, security: anyOf.map((scopes) => ({ bearer: scopes })) }) }))
  )
