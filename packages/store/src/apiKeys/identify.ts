import type { PgClient } from "@effect/sql-pg"
import { isApiKey } from "@seatrial/domain"
import { Clock, Effect, Option, Redacted } from "effect"
import type { Caller } from "../ApiKeys.ts"
import type { KeyCache, LiveKey } from "../KeyCache.ts"
import type { AdmittedCallers } from "./AdmittedCallers.ts"
import type { KeyFingerprints } from "./KeyFingerprints.ts"
import { makeKeyLookUps } from "./keyLookUps.ts"
import { sha256Of } from "./secrets.ts"
import type { keyStatements } from "./statements.ts"
import { makeUseRecorder } from "./useRecorder.ts"

/** Minimum interval between two writes of a key's `last_used_at`, milliseconds. */
const useIntervalMillis = 60_000

interface KeyMemory {
  readonly admitted: AdmittedCallers
  readonly cache: KeyCache
  readonly fingerprints: KeyFingerprints
  readonly statements: ReturnType<typeof keyStatements>
}

/** Finds the caller of a token, in the cache or by a query. */
export const makeIdentify = Effect.fnUntraced(function* (sql: PgClient.PgClient, { admitted, cache, fingerprints, statements }: KeyMemory) {
  const clock = yield* Clock.Clock
  const recordUse = yield* makeUseRecorder(sql, useIntervalMillis)

  const query = Effect.fnUntraced(function* (sha256: string, now: number) {
    const generation = cache.generation
    const row = yield* Effect.orDie(statements.findCaller({ sha256: Buffer.from(sha256, "hex"), now }))
    if (Option.isNone(row)) {
      cache.putUnknown(sha256, now, generation)
      return undefined
    }
    const { expiresAt, lastUsedAt, scopes, ...known } = row.value
    const caller: Caller = { ...known, scopes: new Set(scopes) }
    admitted.add(caller, sha256, expiresAt)
    return cache.putLive(sha256, { caller, expiresAt, usedAt: lastUsedAt }, now, generation)
  })
  const lookUp = yield* makeKeyLookUps(cache, fingerprints, query)

  /** Returns the caller of the key, and records its use at intervals. */
  const admit = (key: LiveKey, now: number): Option.Option<Caller> => {
    const { caller } = key
    if (now - key.usedAt >= useIntervalMillis) {
      key.usedAt = now
      recordUse({ id: caller.keyId, orgId: caller.orgId, at: now })
    }
    return Option.some(caller)
  }
  /** The caller if it is cached; otherwise the SHA-256 to look up. */
  const fromCache = (text: string, now: number): Option.Option<Caller> | string => {
    if (!isApiKey(text)) return Option.none<Caller>()
    const sha256 = sha256Of(text)
    const live = cache.live(sha256, now)
    if (live !== undefined) return admit(live, now)
    return cache.isUnknown(sha256, now) ? Option.none<Caller>() : sha256
  }
  const admitFound = (now: number) => (key: LiveKey | undefined) => (key === undefined ? Option.none<Caller>() : admit(key, now))
  const identify = (text: string, addressOf: () => string) => {
    const now = clock.currentTimeMillisUnsafe()
    const known = fromCache(text, now)
    return typeof known === "string" ? Effect.map(lookUp(known, now, addressOf), admitFound(now)) : known
  }
  const authenticate = (token: Redacted.Redacted<string>) =>
    Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      const known = fromCache(Redacted.value(token), now)
      return typeof known === "string" ? Effect.map(query(known, now), admitFound(now)) : Effect.succeed(known)
    })

  return { authenticate, identify }
})
