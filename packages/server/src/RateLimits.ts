import type { Caller, RateClass } from "@seatrial/api"
import { type Draw, TokenBuckets } from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer } from "effect"
import { ServerSettings } from "./ServerSettings.ts"

/** A rate limit is exceeded. `retryAfter`: whole seconds, at least 1. */
export class RateExceeded extends Data.TaggedError("RateExceeded")<{ readonly of: "key" | "org"; readonly retryAfter: number }> {}

/** Rate limits of the API, per process and independent of the inference limits. */
export class RateLimits extends Context.Service<
  RateLimits,
  {
    /**
     * Takes one token from each bucket of the caller for this rate class. Takes none if one of the buckets is empty.
     */
    readonly draw: (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass) => Effect.Effect<void, RateExceeded>
    /**
     * The same for a request whose key lacks a scope. It takes from a bucket of the key only: the buckets of a
     * permitted request must have a token too, which stays there, so that such a key takes nothing from its
     * organization.
     */
    readonly drawRefused: (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass) => Effect.Effect<void, RateExceeded>
  }
>()("seatrial/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Effect.gen(function* () {
      const { rates } = yield* ServerSettings
      const buckets = new TokenBuckets()

      const drawsOf = ({ keyId, orgId }: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass): ReadonlyArray<Draw> => {
        switch (rate) {
          case "read":
            return [
              { name: keyId, rate: rates.readsPerKey },
              { name: orgId, rate: rates.readsPerOrg }
            ]
          case "preview":
            return [{ name: `preview ${orgId}`, rate: rates.previewsPerOrg }]
          case "write":
            return [{ name: `write ${orgId}`, rate: rates.writesPerOrg }]
        }
      }

      const refusedRates = { read: rates.readsPerKey, preview: rates.previewsPerOrg, write: rates.writesPerOrg } satisfies Record<RateClass, Draw["rate"]>
      const refusedDrawsOf = (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass): ReadonlyArray<Draw> => [
        ...drawsOf(caller, rate).map((draw) => ({ ...draw, takesNone: true })),
        { name: `refused ${rate} ${caller.keyId}`, rate: refusedRates[rate] }
      ]

      const drawAll = (draws: ReadonlyArray<Draw>, keyId: string) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const empty = buckets.draw(draws, now)
          return empty === null ? Effect.void : new RateExceeded({ of: empty.name.endsWith(keyId) ? "key" : "org", retryAfter: empty.retryAfter })
        })

      return RateLimits.of({
        draw: (caller, rate) => drawAll(drawsOf(caller, rate), caller.keyId),
        drawRefused: (caller, rate) => drawAll(refusedDrawsOf(caller, rate), caller.keyId)
      })
    })
  )
}
