import type { PgClient } from "@effect/sql-pg"
import { type Ids, KeyId, type OrgId } from "@seatrial/domain"
import { Clock, Effect, Option, Redacted } from "effect"
import type { ApiKeys } from "../ApiKeys.ts"
import { writeAudit } from "../audit.ts"
import { payloadOf } from "./KeyFingerprints.ts"
import { makeSecret } from "./secrets.ts"
import type { ApiKey, keyStatements } from "./statements.ts"

/** What changes of keys need. This process does not wait for its own notifications. */
export interface KeyChanges {
  readonly sql: PgClient.PgClient
  readonly ids: Ids["Service"]
  readonly statements: ReturnType<typeof keyStatements>
  /** Adds a new secret to the known fingerprints, by the hexadecimal SHA-256. */
  readonly addSecret: (sha256: string) => void
  /** Invalidates the key in the caches of this process. */
  readonly forget: (id: KeyId) => void
}

const audit = ({ ids, sql }: KeyChanges, orgId: OrgId, id: KeyId, action: "created" | "updated" | "revoked", before: unknown, after: unknown, at: number) =>
  writeAudit(sql, ids, { orgId, actorKind: "admin", resourceType: "api_key", resourceId: id, action, before, after, at })

/** Invalidates the key in every server's cache. */
const notifyKey = (sql: PgClient.PgClient, id: KeyId) => sql`SELECT pg_notify('api_keys', ${id})`

/** Notifies every process that a key has a new secret. */
const notifySecret = ({ addSecret, sql }: KeyChanges, sha256: Buffer) => {
  const text = sha256.toString("hex")
  addSecret(text)
  return sql`SELECT pg_notify('api_keys', ${payloadOf(text)})`
}

export const createKey = (changes: KeyChanges): ApiKeys["Service"]["create"] => {
  const { ids, sql, statements } = changes
  return Effect.fn("ApiKeys.create")(function* (input) {
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
        Effect.tap(() => notifySecret(changes, sha256)),
        Effect.tap((created) =>
          audit(
            changes,
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
  })
}

export const renameKey = (changes: KeyChanges): ApiKeys["Service"]["rename"] => {
  const { sql, statements } = changes
  return Effect.fn("ApiKeys.rename")(function* (orgId, id, name) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const key = yield* statements.lockLive({ orgId, id })
      if (Option.isNone(key) || key.value.name === name) return key
      const renamed = yield* statements.rename({ orgId, id, name })
      yield* audit(changes, orgId, id, "updated", { name: key.value.name }, { name }, at)
      return Option.some(renamed)
    }).pipe(sql.withTransaction, Effect.orDie)
  })
}

export const rotateKey = (changes: KeyChanges): ApiKeys["Service"]["rotate"] => {
  const { forget, sql, statements } = changes
  return Effect.fn("ApiKeys.rotate")(function* (orgId, id, overlapMillis) {
    const at = yield* Clock.currentTimeMillis
    const { lastFour, prefix, secret, sha256 } = makeSecret()
    const rotated = yield* Effect.gen(function* () {
      const before = yield* statements.lockLive({ orgId, id })
      if (Option.isNone(before) || (before.value.expiresAt !== null && Date.parse(before.value.expiresAt) <= at)) return Option.none()
      const key = yield* statements.rotate({ orgId, id, sha256, prefix, lastFour, until: overlapMillis > 0 ? at + overlapMillis : null })
      const auditFields = (of: ApiKey) => ({ prefix: of.prefix, last_four: of.lastFour, previous_secret_expires_at: of.previousExpiresAt })
      yield* audit(changes, orgId, id, "updated", auditFields(before.value), auditFields(key), at)
      yield* notifyKey(sql, id)
      yield* notifySecret(changes, sha256)
      return Option.some({ key, secret: Redacted.make(secret) })
    }).pipe(sql.withTransaction, Effect.orDie)
    forget(id)
    return rotated
  })
}

export const revokeKey = (changes: KeyChanges): ApiKeys["Service"]["revoke"] => {
  const { forget, sql, statements } = changes
  return Effect.fn("ApiKeys.revoke")(function* (orgId, id) {
    const at = yield* Clock.currentTimeMillis
    const revoked = yield* Effect.gen(function* () {
      const key = yield* statements.revoke({ orgId, id, at })
      if (Option.isNone(key)) return key
      yield* audit(changes, orgId, id, "revoked", { revoked_at: null }, { revoked_at: key.value.revokedAt }, at)
      yield* notifyKey(sql, id)
      return key
    }).pipe(sql.withTransaction, Effect.orDie)
    forget(id)
    return revoked
  })
}
