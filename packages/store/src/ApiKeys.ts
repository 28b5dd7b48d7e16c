import { hash, randomBytes } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { Ids, isApiKey, KeyId, makeApiKey, type OrgId, type Scope, type UserId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Redacted, Stream } from "effect"
import { AdmittedCallers } from "./apiKeys/AdmittedCallers.ts"
import { KeyFingerprints, payloadOf } from "./apiKeys/KeyFingerprints.ts"
import { type KeyLookUpRefused, makeKeyLookUps } from "./apiKeys/keyLookUps.ts"
import { type ApiKey, keyStatements } from "./apiKeys/statements.ts"
import { makeUseRecorder } from "./apiKeys/useRecorder.ts"
import { writeAudit } from "./audit.ts"
import { countLookUps } from "./countLookUps.ts"
import { KeyCache, type LiveKey } from "./KeyCache.ts"
import { listen } from "./listen.ts"

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

const sha256Of = (text: string): string => hash("sha256", text, "hex")

/** A new secret, and the parts of it that are stored. */
const makeSecret = () => {
  const secret = makeApiKey(randomBytes(128))
  return { secret, sha256: Buffer.from(sha256Of(secret), "hex"), prefix: secret.slice(0, 13), lastFour: secret.slice(-4) }
}

export { KeyLookUpRefused } from "./apiKeys/keyLookUps.ts"
export type { ApiKey } from "./apiKeys/statements.ts"

/** Maximum number of keys whose existence a process remembers. */
const maxFingerprints = 250_000

/** Minimum interval between two writes of a key's `last_used_at`, milliseconds. */
const useIntervalMillis = 60_000

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
      const clock = yield* Clock.Clock
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

      yield* listen(sql, "api_keys").pipe(
        Stream.runForEach(
          Effect.fnUntraced(function* (event) {
            if (event._tag === "Notified") {
              fingerprints.applyNotification(event.payload)
              cache.forget(event.payload)
              return admitted.changed(event.payload)
            }
            const isListening = event._tag === "Listening"
            // Without notifications, revocations are missed, so nothing may be cached.
            cache.setTrusted(isListening)
            // Keys may have been created since the last notification.
            if (!isListening) return
            admitted.changed(null)
            yield* Effect.forkScoped(loadFingerprints)
          })
        ),
        Effect.forkScoped
      )

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

      const audit = (orgId: OrgId, id: KeyId, action: "created" | "updated" | "revoked", before: unknown, after: unknown, at: number) =>
        writeAudit(sql, ids, { orgId, actorKind: "admin", resourceType: "api_key", resourceId: id, action, before, after, at })

      /** Invalidates the key in every server's cache; this process does not wait for its notification. */
      const notifyKey = (id: KeyId) => sql`SELECT pg_notify('api_keys', ${id})`
      const forget = (id: KeyId) =>
        Effect.sync(() => {
          cache.forget(id)
          admitted.changed(id)
        })
      /** Notifies every process that a key has a new secret; this process does not wait for its notification. */
      const notifySecret = (sha256: Buffer) => {
        const text = sha256.toString("hex")
        fingerprints.add(text)
        return sql`SELECT pg_notify('api_keys', ${payloadOf(text)})`
      }

      return ApiKeys.of({
        create: Effect.fn("ApiKeys.create")(function* (input) {
          const at = yield* Clock.currentTimeMillis
          const id = yield* ids.make(KeyId, at)
          const { lastFour, prefix, secret, sha256 } = makeSecret()
          const key = yield* statements
            .insert({
              id,
              org_id: input.orgId,
              user_id: input.userId,
              name: input.name,
              secret_sha256: sha256,
              prefix,
              last_four: lastFour,
              scopes: input.scopes,
              created_at: at,
              expires_at: input.expiresAt ?? null
            })
            .pipe(
              Effect.tap(() => notifySecret(sha256)),
              Effect.tap((created) =>
                audit(
                  input.orgId,
                  id,
                  "created",
                  null,
                  {
                    name: created.name,
                    prefix: created.prefix,
                    last_four: created.lastFour,
                    scopes: created.scopes,
                    user_id: created.userId,
                    expires_at: created.expiresAt
                  },
                  at
                )
              ),
              sql.withTransaction,
              Effect.orDie
            )
          return { key, secret: Redacted.make(secret) }
        }),
        authenticate: (token) =>
          Effect.suspend(() => {
            const now = clock.currentTimeMillisUnsafe()
            const known = fromCache(Redacted.value(token), now)
            return typeof known === "string" ? Effect.map(query(known, now), admitFound(now)) : Effect.succeed(known)
          }),
        identify,
        watch: (caller, onEnd) => admitted.watch(caller, onEnd),
        list: Effect.fn("ApiKeys.list")((orgId) => Effect.orDie(statements.list(orgId))),
        find: Effect.fn("ApiKeys.find")((orgId, id) => Effect.orDie(statements.find({ orgId, id }))),
        rename: Effect.fn("ApiKeys.rename")(function* (orgId, id, name) {
          const at = yield* Clock.currentTimeMillis
          return yield* Effect.gen(function* () {
            const key = yield* statements.lockLive({ orgId, id })
            if (Option.isNone(key) || key.value.name === name) return key
            const renamed = yield* statements.rename({ orgId, id, name })
            yield* audit(orgId, id, "updated", { name: key.value.name }, { name }, at)
            return Option.some(renamed)
          }).pipe(sql.withTransaction, Effect.orDie)
        }),
        rotate: Effect.fn("ApiKeys.rotate")(function* (orgId, id, overlapMillis) {
          const at = yield* Clock.currentTimeMillis
          const { lastFour, prefix, secret, sha256 } = makeSecret()
          const rotated = yield* Effect.gen(function* () {
            const before = yield* statements.lockLive({ orgId, id })
            if (Option.isNone(before) || (before.value.expiresAt !== null && Date.parse(before.value.expiresAt) <= at)) return Option.none()
            const key = yield* statements.rotate({ orgId, id, sha256, prefix, lastFour, until: overlapMillis > 0 ? at + overlapMillis : null })
            const auditFields = (of: ApiKey) => ({ prefix: of.prefix, last_four: of.lastFour, previous_secret_expires_at: of.previousExpiresAt })
            yield* audit(orgId, id, "updated", auditFields(before.value), auditFields(key), at)
            yield* notifyKey(id)
            yield* notifySecret(sha256)
            return Option.some({ key, secret: Redacted.make(secret) })
          }).pipe(sql.withTransaction, Effect.orDie)
          yield* forget(id)
          return rotated
        }),
        revoke: Effect.fn("ApiKeys.revoke")(function* (orgId, id) {
          const at = yield* Clock.currentTimeMillis
          const revoked = yield* Effect.gen(function* () {
            const key = yield* statements.revoke({ orgId, id, at })
            if (Option.isNone(key)) return key
            yield* audit(orgId, id, "revoked", { revoked_at: null }, { revoked_at: key.value.revokedAt }, at)
            yield* notifyKey(id)
            return key
          }).pipe(sql.withTransaction, Effect.orDie)
          yield* forget(id)
          return revoked
        })
      })
    })
  )
}
