import { type Rate, TokenBuckets } from "@seatrial/domain"
import { Clock, Data, Deferred, Effect, PartitionedSemaphore, type Scope } from "effect"
import type { KeyCache, LiveKey } from "../KeyCache.ts"
import { storeMetrics } from "../metrics.ts"
import type { KeyFingerprints } from "./KeyFingerprints.ts"

/**
 * The caller's address sent too many nonexistent keys, or too many lookups are queued. `retryAfter` in whole seconds,
 * at least 1.
 */
export class KeyLookUpRefused extends Data.TaggedError("KeyLookUpRefused")<{ readonly retryAfter: number }> {}

/** Rate of lookups of nonexistent keys for each address. */
const failures: Rate = { perSecond: 1, burst: 30 }

/** Maximum number of addresses with counted failures. */
const maxAddresses = 20_000

/** Maximum number of concurrent queries for keys that may not exist, of all addresses together. */
const maxUnknown = 2

/** Maximum number of keys that wait for such a query. */
const maxWaiting = 256

type FoundKey = LiveKey | undefined

interface PendingLookUp {
  /** The cache's generation at the start of the query: its result does not include later changes. */
  readonly generation: number
  readonly result: Deferred.Deferred<FoundKey>
}

/** Lookups in progress. Requests with the same key share one, and it outlives them. */
const shareLookUps = (cache: KeyCache, scope: Scope.Scope) => {
  const pending = new Map<string, PendingLookUp>()

  const find = (sha256: string): Effect.Effect<FoundKey> | undefined => {
    const entry = pending.get(sha256)
    return entry !== undefined && entry.generation === cache.generation ? Deferred.await(entry.result) : undefined
  }

  const start = (sha256: string, lookUp: Effect.Effect<FoundKey>): Effect.Effect<FoundKey> => {
    const entry = { generation: cache.generation, result: Deferred.makeUnsafe<FoundKey>() }
    pending.set(sha256, entry)
    const settled = Effect.onExit(lookUp, (exit) => {
      if (pending.get(sha256) === entry) pending.delete(sha256)
      return Deferred.done(entry.result, exit)
    })
    // Waiting callers also get a defect.
    return Effect.andThen(Effect.forkIn(Effect.ignoreCause(settled), scope), Deferred.await(entry.result))
  }

  return { find, start }
}

/**
 * Looks up keys that are not cached. A key with a known fingerprint is looked up immediately. Any other key may be a
 * guess: only two such queries run at a time, in turn by address, and an address that sent too many nonexistent keys
 * must wait. Requests with the same key share a query, which outlives its callers.
 */
export const makeKeyLookUps = Effect.fnUntraced(function* (
  cache: KeyCache,
  fingerprints: KeyFingerprints,
  query: (sha256: string, now: number) => Effect.Effect<FoundKey>
) {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const buckets = new TokenBuckets(maxAddresses)
  const turns = yield* PartitionedSemaphore.make<string>({ permits: maxUnknown })
  const lookUps = shareLookUps(cache, scope)
  let waiting = 0

  const queryInTurn = (sha256: string, address: string): Effect.Effect<FoundKey> => {
    waiting++
    let isWaiting = true
    const leaveQueue = () => {
      if (isWaiting) waiting--
      isWaiting = false
    }
    const queried = turns.withPermit(address)(
      Effect.suspend(() => {
        leaveQueue()
        return query(sha256, clock.currentTimeMillisUnsafe())
      })
    )
    return Effect.onExit(queried, (exit) =>
      Effect.sync(() => {
        leaveQueue()
        const exists = exit._tag === "Success" && exit.value !== undefined
        if (exists) fingerprints.add(sha256)
        // Only a nonexistent key counts as a failure.
        if (exists || exit._tag === "Failure") buckets.giveBack(address)
      })
    )
  }

  const refuse = (retryAfter: number) =>
    Effect.andThen(storeMetrics.keyLookUps.update({ result: "refused" }, 1), Effect.fail(new KeyLookUpRefused({ retryAfter })))

  /** `now` in Unix milliseconds; `addressOf` is only called for a key that may not exist. */
  return (sha256: string, now: number, addressOf: () => string): Effect.Effect<FoundKey, KeyLookUpRefused> =>
    Effect.suspend(() => {
      const shared = lookUps.find(sha256)
      if (shared !== undefined) return shared
      if (fingerprints.has(sha256)) return lookUps.start(sha256, query(sha256, now))
      if (waiting >= maxWaiting) return refuse(1)
      const address = addressOf()
      const empty = buckets.draw([{ name: address, rate: failures }], now)
      return empty === null ? lookUps.start(sha256, queryInTurn(sha256, address)) : refuse(empty.retryAfter)
    })
})
