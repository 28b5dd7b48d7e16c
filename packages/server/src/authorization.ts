import { Authorization, Caller, RateClassOf, type RateLimited, RequiredScopes, type Unauthorized } from "@seatrial/api"
import { clientBlock } from "@seatrial/domain"
import { ApiKeys, TenantScope } from "@seatrial/store"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { invalidApiKey, missingApiKey, missingScope, rateLimited } from "./publicErrors.ts"
import { RateLimits } from "./RateLimits.ts"
import { ServerSettings } from "./ServerSettings.ts"

/** Checks the API key, then the rate limit, then the scopes of the endpoint. */
export const layerAuthorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const keys = yield* ApiKeys
    const limits = yield* RateLimits
    const { trustedProxies } = yield* ServerSettings

    const refuse: Effect.Effect<never, Unauthorized, HttpServerRequest.HttpServerRequest> = Effect.flatMap(
      HttpServerRequest.HttpServerRequest,
      ({ headers }) => (headers.authorization === undefined ? missingApiKey : invalidApiKey)
    )

    const addressOf = ({ headers, remoteAddress }: HttpServerRequest.HttpServerRequest) =>
      clientBlock(Option.getOrUndefined(remoteAddress), headers["x-forwarded-for"], trustedProxies)

    const identify = (token: string, request: HttpServerRequest.HttpServerRequest): Effect.Effect<Caller["Service"], RateLimited | Unauthorized> => {
      const identified = keys.identify(token, () => addressOf(request))
      const callerOf = (known: Option.Option<Caller["Service"]>) => (Option.isNone(known) ? invalidApiKey : Effect.succeed(known.value))
      if (!Effect.isEffect(identified)) return callerOf(identified)
      return Effect.matchEffect(identified, { onFailure: ({ retryAfter }) => rateLimited("address", retryAfter), onSuccess: callerOf })
    }

    const admit = (caller: Caller["Service"], endpoint: HttpApiEndpoint.Top) => {
      const rate = Context.get(endpoint.annotations, RateClassOf)
      const limited = (drawn: ReturnType<typeof limits.draw>) => Effect.catchTag(drawn, "RateExceeded", ({ of, retryAfter }) => rateLimited(of, retryAfter))
      const anyOf = Context.get(endpoint.annotations, RequiredScopes)
      if (anyOf.some((scopes) => scopes.every((scope) => caller.scopes.has(scope)))) return limited(limits.draw(caller, rate))
      return Effect.andThen(limited(limits.drawRefused(caller, rate)), missingScope(anyOf[0]?.find((scope) => !caller.scopes.has(scope)) ?? ""))
    }

    return Authorization.of({
      bearer: (handler, { credential, endpoint }) => {
        if (Redacted.value(credential) === "") return refuse
        return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          Effect.flatMap(identify(Redacted.value(credential), request), (caller) =>
            Effect.andThen(admit(caller, endpoint), Effect.provideService(Effect.provideService(handler, Caller, caller), TenantScope, caller.orgId))
          )
        )
      }
    })
  })
)
