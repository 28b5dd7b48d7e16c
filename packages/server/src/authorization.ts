import { Authorization, Caller, RateClassOf, RequiredScopes } from "@seatrial/api"
import { ApiKeys } from "@seatrial/store"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { invalidApiKey, missingApiKey, missingScope, rateLimited } from "./publicErrors.ts"
import { RateLimits } from "./RateLimits.ts"

/** The key, then the rate, then the scopes that stand beside the endpoint. */
export const layerAuthorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const keys = yield* ApiKeys
    const limits = yield* RateLimits

    return Authorization.of({
      bearer: Effect.fnUntraced(function* (handler, { credential, endpoint }) {
        if (Redacted.value(credential) === "") {
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          return yield* headers.authorization === undefined ? missingApiKey : invalidApiKey
        }
        const found = yield* keys.authenticate(credential)
        if (Option.isNone(found)) return yield* invalidApiKey
        const caller = found.value
        yield* Effect.catchTag(limits.draw(caller, Context.get(endpoint.annotations, RateClassOf)), "RateExceeded", ({ of, retryAfter }) =>
          rateLimited(of, retryAfter)
        )
        const anyOf = Context.get(endpoint.annotations, RequiredScopes)
        if (!anyOf.some((scopes) => scopes.every((scope) => caller.scopes.has(scope)))) {
          return yield* missingScope(anyOf[0]?.find((scope) => !caller.scopes.has(scope)) ?? "")
        }
        return yield* Effect.provideService(handler, Caller, caller)
      })
    })
  })
)
