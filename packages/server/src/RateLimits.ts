import type { Caller, RateClass } from "@seatrial/api"
import { Clock, Context, Data, Effect, Layer } from "effect"
import { type Rate, ServerSettings } from "./ServerSettings.ts"

/** A draw was refused. `retryAfter` in whole seconds, at least 1. */
export class RateExceeded extends Data.TaggedError("RateExceeded")<{ readonly of: "key" | "org"; readonly retryAfter: number }> {}

interface Bucket {
  tokens: number
  /** Unix milliseconds at which `tokens` was right. */
  at: number
}

/** Buckets that have filled up again are forgotten when there are more than this many. */
const sweepAbove = 4096

/** What callers may draw, in this process: independent of inference limits. */
export class RateLimits extends Context.Service<
  RateLimits,
  {
    /** Takes one token from each bucket that the class of call has for this caller, or, where one is empty, none at all. */
    readonly draw: (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass) => Effect.Effect<void, RateExceeded>
  }
>()("seatrial/RateLimits") {
  static readonly layer = Layer.effect(
    RateLimits,
    Effect.gen(function* () {
      const { rates } = yield* ServerSettings
      const buckets = new Map<string, Bucket>()

      const bucketOf = (name: string, rate: Rate, now: number): Bucket => {
        const known = buckets.get(name)
        if (known === undefined) {
          const full: Bucket = { tokens: rate.burst, at: now }
          buckets.set(name, full)
          return full
        }
        known.tokens = Math.min(rate.burst, known.tokens + (Math.max(0, now - known.at) / 1000) * rate.perSecond)
        known.at = now
        return known
      }

      /** Whole seconds until the bucket has a token again. */
      const wait = ({ tokens }: Bucket, { perSecond }: Rate): number => Math.max(1, Math.ceil((1 - tokens) / perSecond))

      const drawOrg = (name: string, rate: Rate, now: number) => {
        const bucket = bucketOf(name, rate, now)
        if (bucket.tokens < 1) return new RateExceeded({ of: "org", retryAfter: wait(bucket, rate) })
        bucket.tokens--
        return undefined
      }

      const drawRead = (keyId: string, orgId: string, now: number) => {
        const ofKey = bucketOf(keyId, rates.readsPerKey, now)
        const ofOrg = bucketOf(orgId, rates.readsPerOrg, now)
        const keyShort = ofKey.tokens < 1
        const orgShort = ofOrg.tokens < 1
        if (keyShort || orgShort) {
          const retryAfter = Math.max(keyShort ? wait(ofKey, rates.readsPerKey) : 1, orgShort ? wait(ofOrg, rates.readsPerOrg) : 1)
          return new RateExceeded({ of: keyShort ? "key" : "org", retryAfter })
        }
        ofKey.tokens--
        ofOrg.tokens--
        return undefined
      }

      const exceeded = (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass, now: number): RateExceeded | undefined => {
        switch (rate) {
          case "read":
            return drawRead(caller.keyId, caller.orgId, now)
          case "preview":
            return drawOrg(`preview ${caller.orgId}`, rates.previewsPerOrg, now)
          case "write":
            return drawOrg(`write ${caller.orgId}`, rates.writesPerOrg, now)
        }
      }

      let sweptAt = 0
      const sweep = (now: number) => {
        if (buckets.size <= sweepAbove || now - sweptAt < 1000) return
        sweptAt = now
        const slowest = Math.max(...Object.values(rates).map(({ burst, perSecond }) => burst / perSecond))
        for (const [name, bucket] of buckets) if (now - bucket.at >= slowest * 1000) buckets.delete(name)
      }

      return RateLimits.of({
        draw: (caller, rate) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) => {
            sweep(now)
            return exceeded(caller, rate, now) ?? Effect.void
          })
      })
    })
  )
}
