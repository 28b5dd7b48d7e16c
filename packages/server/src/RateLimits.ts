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

interface Draw {
  readonly of: "key" | "org"
  readonly name: string
  readonly rate: Rate
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

      const draws = (caller: Pick<Caller["Service"], "keyId" | "orgId">, rate: RateClass): ReadonlyArray<Draw> => {
        switch (rate) {
          case "read":
            return [
              { of: "key", name: caller.keyId, rate: rates.readsPerKey },
              { of: "org", name: caller.orgId, rate: rates.readsPerOrg }
            ]
          case "preview":
            return [{ of: "org", name: `preview ${caller.orgId}`, rate: rates.previewsPerOrg }]
          case "write":
            return [{ of: "org", name: `write ${caller.orgId}`, rate: rates.writesPerOrg }]
        }
      }

      const filled = (bucket: Bucket, rate: Rate, now: number) => Math.min(rate.burst, bucket.tokens + (Math.max(0, now - bucket.at) / 1000) * rate.perSecond)

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
            const wanted = draws(caller, rate).map((draw) => {
              const bucket = buckets.get(draw.name)
              return { draw, tokens: bucket === undefined ? draw.rate.burst : filled(bucket, draw.rate, now) }
            })
            const short = wanted.filter(({ tokens }) => tokens < 1)
            const first = short[0]
            if (first !== undefined) {
              const seconds = Math.max(...short.map(({ draw, tokens }) => (1 - tokens) / draw.rate.perSecond))
              return Effect.fail(new RateExceeded({ of: first.draw.of, retryAfter: Math.max(1, Math.ceil(seconds)) }))
            }
            for (const { draw, tokens } of wanted) buckets.set(draw.name, { tokens: tokens - 1, at: now })
            return Effect.void
          })
      })
    })
  )
}
