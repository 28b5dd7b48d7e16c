import type { Caller, RateClass } from "@seatrial/api"
import { type Draw, TokenBuckets } from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer } from "effect"
import { ServerSettings } from "./ServerSettings.ts"

/** A draw was refused. `retryAfter` in whole seconds, at least 1. */
export class RateExceeded extends Data.TaggedError("RateExceeded")<{ readonly of: "key" | "org"; readonly retryAfter: number }> {}

/** What callers may draw, in this process: independent of inference limits. */
export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** Takes one token from each bucket that the class of call has for this caller, or none at all if one of them is empty. */
    readonly draw: (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass) => Effect.Effect<void, RateExceeded>
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

      return RateLimits.of({
        draw: (caller, rate) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            const empty = buckets.draw(drawsOf(caller, rate), now)
            return empty === null ? Effect.void : new RateExceeded({ of: empty.name === caller.keyId ? "key" : "org", retryAfter: empty.retryAfter })
          })
      })
    })
  )
}
