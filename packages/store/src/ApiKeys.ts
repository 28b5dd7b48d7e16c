import { PgClient } from "@effect/sql-pg"
import { Ids, type KeyId, type OrgId, type Scope, type UserId } from "@seatrial/domain"
import { Context, Effect, Layer, Option, type Redacted } from "effect"
import { AdmittedCallers } from "./apiKeys/AdmittedCallers.ts"
import { createKey, type KeyChanges, renameKey, revokeKey, rotateKey } from "./apiKeys/changes.ts"
import { followKeys } from "./apiKeys/followKeys.ts"
import { makeIdentify } from "./apiKeys/identify.ts"
import { KeyFingerprints } from "./apiKeys/KeyFingerprints.ts"
import type { KeyLookUpRefused } from "./apiKeys/keyLookUps.ts"
import { type ApiKey, keyStatements } from "./apiKeys/statements.ts"
import { countLookUps } from "./countLookUps.ts"
import { KeyCache } from "./KeyCache.ts"

/** The identity behind an API key. */
export interface Caller {
  readonly keyId: KeyId
  readonly orgId: OrgId
  readonly orgSlug: string
  /** The user who created the key. */
  readonly userId: UserId
  readonly scopes: ReadonlySet<Scope>
  readonly firstPurchase: boolean
  /**
   * Whether a spending rule applies to the organization or the key: it is prepaid, it has a limit, or its billing is
   * suspended.
   */
  readonly spendLimited: boolean
}

export { KeyLookUpRefused } from "./apiKeys/keyLookUps.ts"
export type { ApiKey } from "./apiKeys/statements.ts"

/** Maximum number of keys whose existence a process remembers. */
const maxFingerprints = 250_000

/** API keys. Only their SHA-256 is stored. Every change writes an audit event. */
export class ApiKeys extends Context.Service<
  ApiKeys,
  {
    /**
     * Returns the secret; it cannot be read again. `expiresAt` in Unix milliseconds. Dies if the user is not a member
     * of the organization.
     */
    readonly create: (input: {
      readonly orgId: OrgId
      readonly userId: UserId
      readonly name: string
      readonly scopes: ReadonlyArray<Scope>
      readonly expiresAt?: number
    }) => Effect.Effect<{ readonly key: ApiKey; readonly secret: Redacted.Redacted<string> }>
    /**
     * Returns the caller if the token is a live key of an active organization. Answers are cached for at most 30 s and
     * dropped when a key or an organization changes (`NOTIFY api_keys`). `last_used_at` is written at most once a
     * minute. The lookup is not rate-limited: use it only for tokens that did not come from a caller on the network.
     */
    readonly authenticate: (token: Redacted.Redacted<string>) => Effect.Effect<Option.Option<Caller>>
    /**
     * The same for a token from the network; no effect is needed if the answer is cached. `addressOf` returns the
     * address block of the caller. An address that sent too many nonexistent keys is refused further lookups of unknown
     * keys. Existing keys are never refused because of other callers at the address.
     */
    readonly identify: (token: string, addressOf: () => string) => Option.Option<Caller> | Effect.Effect<Option.Option<Caller>, KeyLookUpRefused>
    /**
     * Calls `onEnd` once when the caller's secret is no longer valid: the key was revoked or has expired, or the
     * organization was suspended. Notifications trigger it; an expiry takes up to a second. Call the returned function
     * when the request has ended.
     */
    readonly watch: (caller: Caller, onEnd: () => void) => () => void
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<ApiKey>>
    readonly find: (orgId: OrgId, id: KeyId) => Effect.Effect<Option.Option<ApiKey>>
    /** None if the organization has no such live key. */
    readonly rename: (orgId: OrgId, id: KeyId, name: string) => Effect.Effect<Option.Option<ApiKey>>
    /**
     * Creates a new secret for the same key; its ID, scopes and expiry stay. The previous secret stays valid for
     * `overlapMillis` (0 to 7 days) and then ends in all processes at that millisecond. A secret that was still valid
     * from an earlier rotation ends now. None if the organization has no such live key, or if the key has expired.
     */
    readonly rotate: (
      orgId: OrgId,
      id: KeyId,
      overlapMillis: number
    ) => Effect.Effect<Option.Option<{ readonly key: ApiKey; readonly secret: Redacted.Redacted<string> }>>
    /** None if the organization has no such live key. */
    readonly revoke: (orgId: OrgId, id: KeyId) => Effect.Effect<Option.Option<ApiKey>>
  }
>()("seatrial/ApiKeys") {
  static readonly layerSql = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const cache = new KeyCache(10_000)
      yield* countLookUps(cache)

      const statements = keyStatements(sql)
      const fingerprints = new KeyFingerprints(maxFingerprints)
      const loadFingerprints = statements.joinFingerprints(maxFingerprints).pipe(
        Effect.map((joined) => fingerprints.addAll(joined)),
        Effect.catch((error) => Effect.logWarning(`Could not read the fingerprints of API keys; lookups may be delayed (${error.message})`))
      )
      yield* loadFingerprints
      const admitted = yield* AdmittedCallers.make({
        findExpiry: (sha256, now) =>
          Effect.map(Effect.orDie(statements.findCaller({ sha256: Buffer.from(sha256, "hex"), now })), (row) =>
            Option.isNone(row) ? undefined : row.value.expiresAt
          ),
        isCurrent: (sha256, caller) => cache.holds(sha256, caller)
      })

      yield* followKeys(sql, { admitted, cache, fingerprints, loadFingerprints })
      const { authenticate, identify } = yield* makeIdentify(sql, { admitted, cache, fingerprints, statements })

      const changes: KeyChanges = {
        sql,
        ids,
        statements,
        addSecret: (sha256) => fingerprints.add(sha256),
        forget: (id) => {
          cache.forget(id)
          admitted.changed(id)
        }
      }
      return ApiKeys.of({
        create: createKey(changes),
        authenticate,
        identify,
        watch: (caller, onEnd) => admitted.watch(caller, onEnd),
        list: Effect.fn("ApiKeys.list")((orgId) => Effect.orDie(statements.list(orgId))),
        find: Effect.fn("ApiKeys.find")((orgId, id) => Effect.orDie(statements.find({ orgId, id }))),
        rename: renameKey(changes),
        rotate: rotateKey(changes),
        revoke: revokeKey(changes)
      })
    })
  )
}
