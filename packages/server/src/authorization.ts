import { Authorization, Caller, RateClassOf, RequiredScopes, type Unauthorized } from "@seatrial/api"
import { ApiKeys } from "@seatrial/store"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { invalidApiKey, missingApiKey, missingScope, rateLimited } from "./publicErrors.ts"
import { RateLimits } from "./RateLimits.ts"

/** The key, then the rate, then the scopes that stand beside the endpoint. */
export const layerAuthorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const keys = yield* ApiKeys
    const limits = yield* RateLimits

    const refuse: Effect.Effect<never, Unauthorized, HttpServerRequest.HttpServerRequest> = Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      ({ headers }) => (headers.authorization === undefined ? missingApiKey : invalidApiKey)
    )

    const admit = (caller: Caller["Service"], endpoint: HttpApiEndpoint.Top) => {
      const drawn = Effect.catchTag(limits.draw(caller, Context.get(endpoint.annotations, RateClassOf)), "RateExceeded", ({ of, retryAfter }) =>
        rateLimited(of, retryAfter)
      )
      const anyOf = Context.get(endpoint.annotations, RequiredScopes)
      if (anyOf.some((scopes) => scopes.every((scope) => caller.scopes.has(scope)))) return drawn
      return Effect.andThen(drawn, missingScope(anyOf[0]?.find((scope) => !caller.scopes.has(scope)) ?? ""))
    }

    return Authorization.of({
      bearer: (handler, { credential, endpoint }) => {
        if (Redacted.value(credential) === "") return refuse
        const known = Effect.flatMap(
          keys.authenticate(credential),
          (found): Effect.Effect<Caller["Service"], Unauthorized> => (Option.isNone(found) ? invalidApiKey : Effect.succeed(found.value))
        )
        return Effect.flatMap(known, (caller) => Effect.andThen(admit(caller, endpoint), Effect.provideService(handler, Caller, caller)))
      }
    })
  })
)
