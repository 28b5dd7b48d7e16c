import type { PgClient } from "@effect/sql-pg"
import { KeyId, OrgId, Scope, UserId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { type SqlError, SqlSchema } from "effect/sql"
import { IsoFromDate, MillisFromDate } from "../columns.ts"

export interface ApiKey {
  readonly id: KeyId
  readonly orgId: OrgId
  readonly userId: UserId
  readonly name: string
  /** `seatrial_` and the first characters, then the last four: enough to recognize the key, not to use it. */
  readonly prefix: string
  readonly lastFour: string
  readonly scopes: ReadonlyArray<Scope>
  /** ISO 8601, or null. */
  readonly createdAt: string
  readonly expiresAt: string | null
  readonly revokedAt: string | null
  readonly lastUsedAt: string | null
  /** When the secret before the last rotation expires; null if there is none. */
  readonly previousExpiresAt: string | null
}

const nullableTime = Schema.NullOr(IsoFromDate)
const ApiKeyRow = Schema.Struct({
  id: KeyId,
  orgId: OrgId,
  userId: UserId,
  name: Schema.String,
  prefix: Schema.String,
  lastFour: Schema.String,
  scopes: Schema.Array(Scope),
  createdAt: IsoFromDate,
  expiresAt: nullableTime,
  revokedAt: nullableTime,
  lastUsedAt: nullableTime,
  previousExpiresAt: nullableTime
})
const CallerRow = Schema.Struct({
  keyId: KeyId,
  orgId: OrgId,
  orgSlug: Schema.String,
  userId: UserId,
  scopes: Schema.Array(Scope),
  firstPurchase: Schema.Boolean,
  spendLimited: Schema.Boolean,
  expiresAt: Schema.NullOr(MillisFromDate),
  lastUsedAt: Schema.NullOr(MillisFromDate)
})

const columns = `
  id, org_id AS "orgId", user_id AS "userId", name, prefix, last_four AS "lastFour", scopes, created_at AS "createdAt", expires_at AS "expiresAt",
  revoked_at AS "revokedAt", last_used_at AS "lastUsedAt", previous_expires_at AS "previousExpiresAt"`

/** Reads of keys by their secrets. */
const secretStatements = (sql: PgClient.PgClient) => {
  // One index lookup for each of the two secrets that a key can have.
  const findCaller = SqlSchema.findOneOption({
    Request: Schema.Struct({ sha256: Schema.Uint8Array, now: Schema.Finite }),
    Result: CallerRow,
    execute: ({ now, sha256 }) => sql`
      SELECT k.id AS "keyId", k.org_id AS "orgId", o.slug AS "orgSlug", k.user_id AS "userId", k.scopes,
        o.first_purchase_at IS NOT NULL AND o.billing_suspended_at IS NULL AS "firstPurchase",
        o.spend_limited OR o.billing_suspended_at IS NOT NULL AS "spendLimited", k.until AS "expiresAt", k.last_used_at AS "lastUsedAt"
      FROM (
        SELECT id, org_id, user_id, scopes, last_used_at, expires_at AS until FROM api_keys WHERE secret_sha256 = ${sha256} AND revoked_at IS NULL
        UNION ALL
        SELECT id, org_id, user_id, scopes, last_used_at, least(expires_at, previous_expires_at)
        FROM api_keys WHERE previous_sha256 = ${sha256} AND revoked_at IS NULL
      ) k JOIN organizations o ON o.id = k.org_id
      WHERE o.status = 'active' AND (k.until IS NULL OR k.until > ${new Date(now)})`
  })

  /** The first 6 bytes of the SHA-256 of all valid secrets, most recently used first, concatenated. */
  const joinFingerprints = (limit: number): Effect.Effect<Uint8Array, SqlError.SqlError> =>
    Effect.map(
      sql<{ readonly joined: Uint8Array | null }>`
      SELECT string_agg(fingerprint, ''::bytea) AS joined FROM (
        SELECT substring(secret.sha256 FOR 6) AS fingerprint
        FROM api_keys k CROSS JOIN LATERAL (VALUES (k.secret_sha256), (k.previous_sha256)) AS secret (sha256)
        WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()) AND secret.sha256 IS NOT NULL
        ORDER BY k.last_used_at DESC NULLS LAST LIMIT ${limit}
      ) keys`,
      ([row]) => row?.joined ?? new Uint8Array()
    )

  return { findCaller, joinFingerprints }
}

/** Reads of the keys of one organization. `lockLive`: a key that is not revoked, for a change. */
const listStatements = (sql: PgClient.PgClient) => {
  const list = SqlSchema.findAll({
    Request: OrgId,
    Result: ApiKeyRow,
    execute: (orgId) => sql`SELECT ${sql.literal(columns)} FROM api_keys WHERE org_id = ${orgId} ORDER BY created_at DESC, id DESC`
  })
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: OrgId, id: KeyId }),
    Result: ApiKeyRow,
    execute: ({ id, orgId }) => sql`SELECT ${sql.literal(columns)} FROM api_keys WHERE org_id = ${orgId} AND id = ${id}`
  })
  const lockLive = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: OrgId, id: KeyId }),
    Result: ApiKeyRow,
    execute: ({ id, orgId }) =>
      sql`SELECT ${sql.literal(columns)} FROM api_keys WHERE org_id = ${orgId} AND id = ${id} AND revoked_at IS NULL FOR NO KEY UPDATE`
  })
  return { find, list, lockLive }
}

const changeStatements = (sql: PgClient.PgClient) => {
  const insert = SqlSchema.findOne({
    Request: Schema.Struct({
      id: KeyId,
      org_id: OrgId,
      user_id: UserId,
      name: Schema.String,
      secret_sha256: Schema.Uint8Array,
      prefix: Schema.String,
      last_four: Schema.String,
      scopes: Schema.Array(Scope),
      created_at: MillisFromDate,
      expires_at: Schema.NullOr(MillisFromDate)
    }),
    Result: ApiKeyRow,
    execute: (row) => sql`
      WITH member AS (
        -- Locked until the end, so that a removal of the member, which revokes the keys, is never concurrent.
        SELECT org_id, user_id FROM memberships WHERE org_id = ${row.org_id} AND user_id = ${row.user_id} FOR KEY SHARE
      )
      INSERT INTO api_keys (id, org_id, user_id, name, secret_sha256, prefix, last_four, scopes, created_at, expires_at)
      SELECT ${row.id}, org_id, user_id, ${row.name}, ${row.secret_sha256}, ${row.prefix}, ${row.last_four}, ${row.scopes}::text[],
        ${row.created_at}, ${row.expires_at} FROM member
      RETURNING ${sql.literal(columns)}`
  })
  const rename = SqlSchema.findOne({
    Request: Schema.Struct({ orgId: OrgId, id: KeyId, name: Schema.String }),
    Result: ApiKeyRow,
    execute: ({ id, name, orgId }) => sql`UPDATE api_keys SET name = ${name} WHERE org_id = ${orgId} AND id = ${id} RETURNING ${sql.literal(columns)}`
  })
  const rotate = SqlSchema.findOne({
    Request: Schema.Struct({
      orgId: OrgId,
      id: KeyId,
      sha256: Schema.Uint8Array,
      prefix: Schema.String,
      lastFour: Schema.String,
      until: Schema.NullOr(MillisFromDate)
    }),
    Result: ApiKeyRow,
    execute: ({ id, lastFour, orgId, prefix, sha256, until }) => sql`
      UPDATE api_keys SET secret_sha256 = ${sha256}, prefix = ${prefix}, last_four = ${lastFour}, previous_expires_at = ${until},
        previous_sha256 = CASE WHEN ${until}::timestamptz IS NOT NULL THEN secret_sha256 END
      WHERE org_id = ${orgId} AND id = ${id} RETURNING ${sql.literal(columns)}`
  })
  const revoke = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: OrgId, id: KeyId, at: MillisFromDate }),
    Result: ApiKeyRow,
    execute: ({ at, id, orgId }) => sql`
      UPDATE api_keys SET revoked_at = ${at} WHERE org_id = ${orgId} AND id = ${id} AND revoked_at IS NULL RETURNING ${sql.literal(columns)}`
  })
  return { insert, rename, revoke, rotate }
}

/** The statements of API keys. */
export const keyStatements = (sql: PgClient.PgClient) => ({ ...secretStatements(sql), ...listStatements(sql), ...changeStatements(sql) })
