import { PgClient } from "@effect/sql-pg"
import { Ids, OrgId, UserId } from "@seatrial/domain"
import { Clock, Config, Context, Effect, Layer, Option, Redacted, Result, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { IsoFromDate } from "./columns.ts"
import { EncryptionKeys, headerOf, seal, unseal } from "./sealing.ts"

const ConnectionRow = Schema.Struct({
  userId: UserId,
  email: Schema.String,
  createdAt: IsoFromDate,
  /** When the token was last set. */
  updatedAt: IsoFromDate,
  /** Whether objects applied in the organization's namespaces use this token. */
  shared: Schema.Boolean,
  /** Whether the token is encrypted with the current key. */
  currentKey: Schema.Boolean
})
export type HubConnection = typeof ConnectionRow.Type

const SealedRow = Schema.Struct({ orgId: OrgId, userId: UserId, sealed: Schema.Uint8Array })

const batchSize = 100

/** The name that a token is sealed for. */
const ownerOf = (orgId: string, userId: string) => `${orgId}/${userId}`

/** `header`: the first bytes of tokens that are sealed with the current key. */
const connectionStatements = (sql: PgClient.PgClient, header: Uint8Array) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, userId: Schema.String }),
    Result: Schema.Struct({ sealed: Schema.Uint8Array, updatedAt: IsoFromDate }),
    execute: ({ orgId, userId }) =>
      sql`SELECT sealed_token AS sealed, updated_at AS "updatedAt" FROM hub_connections WHERE org_id = ${orgId} AND user_id = ${userId}`
  })
  const findShared = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Schema.Struct({ userId: UserId, sealed: Schema.Uint8Array }),
    execute: (orgId) => sql`SELECT user_id AS "userId", sealed_token AS sealed FROM hub_connections WHERE org_id = ${orgId} AND shared`
  })
  const list = SqlSchema.findAll({
    Request: Schema.String,
    Result: ConnectionRow,
    execute: (orgId) => sql`
      SELECT h.user_id AS "userId", u.email, h.created_at AS "createdAt", h.updated_at AS "updatedAt", h.shared,
        substring(h.sealed_token FOR ${header.length}) = ${header} AS "currentKey"
      FROM hub_connections h JOIN users u ON u.id = h.user_id WHERE h.org_id = ${orgId} ORDER BY u.email`
  })
  const lockOthers = SqlSchema.findAll({
    Request: Schema.Struct({ orgId: Schema.String, userId: Schema.String }),
    Result: SealedRow,
    execute: (after) => sql`
      SELECT org_id AS "orgId", user_id AS "userId", sealed_token AS sealed FROM hub_connections
      WHERE (org_id, user_id) > (${after.orgId}, ${after.userId}) AND substring(sealed_token FOR ${header.length}) <> ${header}
      ORDER BY org_id, user_id LIMIT ${batchSize} FOR UPDATE`
  })
  return { find, findShared, list, lockOthers }
}
type Statements = ReturnType<typeof connectionStatements>

const auditToken = (sql: PgClient.PgClient, ids: Ids["Service"], orgId: OrgId, userId: UserId, before: string | null, after: string | null, at: number) =>
  writeAudit(sql, ids, {
    orgId,
    actorKind: "admin",
    resourceType: "membership",
    resourceId: userId,
    action: "updated",
    before: { hub_token_set_at: before },
    after: { hub_token_set_at: after },
    at
  })

const auditShared = (sql: PgClient.PgClient, ids: Ids["Service"], orgId: OrgId, userId: UserId, shared: boolean, at: number) =>
  writeAudit(sql, ids, {
    orgId,
    actorKind: "admin",
    resourceType: "membership",
    resourceId: userId,
    action: "updated",
    before: { hub_token_shared: !shared },
    after: { hub_token_shared: shared },
    at
  })

const setToken = (sql: PgClient.PgClient, ids: Ids["Service"], keys: EncryptionKeys, { find }: Statements): HubConnections["Service"]["set"] =>
  Effect.fn("HubConnections.set")(function* (orgId, userId, token) {
    const at = yield* Clock.currentTimeMillis
    const now = new Date(at)
    const sealed = seal(keys, Redacted.value(token), ownerOf(orgId, userId))
    yield* Effect.gen(function* () {
      yield* sql`SELECT 1 FROM memberships WHERE org_id = ${orgId} AND user_id = ${userId} FOR NO KEY UPDATE`
      const before = yield* find({ orgId, userId })
      yield* sql`
        INSERT INTO hub_connections (org_id, user_id, sealed_token, created_at, updated_at) VALUES (${orgId}, ${userId}, ${sealed}, ${now}, ${now})
        ON CONFLICT (org_id, user_id) DO UPDATE SET sealed_token = excluded.sealed_token, updated_at = excluded.updated_at`
      yield* auditToken(sql, ids, orgId, userId, Option.getOrNull(Option.map(before, ({ updatedAt }) => updatedAt)), now.toISOString(), at)
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const shareToken = (sql: PgClient.PgClient, ids: Ids["Service"], { find, findShared }: Statements): HubConnections["Service"]["share"] =>
  Effect.fn("HubConnections.share")((orgId, userId) =>
    Effect.gen(function* () {
      const at = yield* Clock.currentTimeMillis
      // Serializes concurrent calls, even if nothing is shared yet.
      yield* sql`SELECT 1 FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`
      const before = Option.getOrNull(yield* findShared(orgId))
      if (userId !== null && Option.isNone(yield* find({ orgId, userId }))) return false
      if (before?.userId === userId) return true
      if (before === null && userId === null) return false
      if (before !== null) {
        yield* sql`UPDATE hub_connections SET shared = false WHERE org_id = ${orgId} AND shared`
        yield* auditShared(sql, ids, orgId, before.userId, false, at)
      }
      if (userId !== null) {
        yield* sql`UPDATE hub_connections SET shared = true WHERE org_id = ${orgId} AND user_id = ${userId}`
        yield* auditShared(sql, ids, orgId, userId, true, at)
      }
      return true
    }).pipe(sql.withTransaction, Effect.orDie)
  )

const removeConnection = (sql: PgClient.PgClient, ids: Ids["Service"], { find }: Statements): HubConnections["Service"]["remove"] =>
  Effect.fn("HubConnections.remove")(function* (orgId, userId) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      yield* sql`SELECT 1 FROM memberships WHERE org_id = ${orgId} AND user_id = ${userId} FOR NO KEY UPDATE`
      const before = yield* find({ orgId, userId })
      if (Option.isNone(before)) return false
      yield* sql`DELETE FROM hub_connections WHERE org_id = ${orgId} AND user_id = ${userId}`
      yield* auditToken(sql, ids, orgId, userId, before.value.updatedAt, null, at)
      return true
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const rotateKey = (sql: PgClient.PgClient, keys: EncryptionKeys, { lockOthers }: Statements): HubConnections["Service"]["rotateKey"] => {
  const resealBatch = Effect.fnUntraced(function* (after: { readonly orgId: string; readonly userId: string }) {
    const rows = yield* lockOthers(after)
    let unreadable = 0
    for (const { orgId, sealed, userId } of rows) {
      const owner = ownerOf(orgId, userId)
      const text = Result.try(() => unseal(keys, sealed, owner))
      if (Result.isFailure(text)) unreadable++
      else yield* sql`UPDATE hub_connections SET sealed_token = ${seal(keys, text.success, owner)} WHERE org_id = ${orgId} AND user_id = ${userId}`
    }
    return { last: rows.at(-1), resealed: rows.length - unreadable, unreadable }
  }, sql.withTransaction)

  return Effect.gen(function* () {
    let total = { resealed: 0, unreadable: 0 }
    let after: { readonly orgId: string; readonly userId: string } | undefined = { orgId: "", userId: "" }
    while (after !== undefined) {
      const batch: Effect.Success<ReturnType<typeof resealBatch>> = yield* resealBatch(after)
      total = { resealed: total.resealed + batch.resealed, unreadable: total.unreadable + batch.unreadable }
      after = batch.last
    }
    return total
  }).pipe(Effect.orDie, Effect.withSpan("HubConnections.rotateKey"))
}

/**
 * Hub tokens of users, encrypted at rest (AES-256-GCM) with the first key of `SEATRIAL_ENCRYPTION_KEY`; the other keys
 * still decrypt older tokens. Each change writes an audit event: `updated` of the membership.
 */
export class HubConnections extends Context.Service<
  HubConnections,
  {
    readonly set: (orgId: OrgId, userId: UserId, token: Redacted.Redacted<string>) => Effect.Effect<void>
    readonly find: (orgId: OrgId, userId: UserId) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    /**
     * The token that an organization shares with objects applied in its namespaces, because such objects have no user.
     */
    readonly findShared: (orgId: OrgId) => Effect.Effect<Option.Option<Redacted.Redacted<string>>>
    /**
     * Shares this user's token instead of any other; null shares none. False if the user has no token, or if none was
     * shared.
     */
    readonly share: (orgId: OrgId, userId: UserId | null) => Effect.Effect<boolean>
    /** All connections of an organization, without tokens. */
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<HubConnection>>
    /** Whether a connection was removed. */
    readonly remove: (orgId: OrgId, userId: UserId) => Effect.Effect<boolean>
    /**
     * Encrypts all tokens again that do not use the current key, in batches of one transaction each; an interrupted
     * rotation can be continued. `unreadable`: tokens that no configured key decrypts; they are not changed.
     */
    readonly rotateKey: Effect.Effect<{ readonly resealed: number; readonly unreadable: number }>
  }
>()("seatrial/HubConnections") {
  static readonly layerSql = Layer.effect(
    HubConnections,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const configured = yield* Config.schema(Schema.Redacted(EncryptionKeys), "SEATRIAL_ENCRYPTION_KEY")
      const keys = Redacted.value(configured)
      const statements = connectionStatements(sql, headerOf(keys[0]))

      return HubConnections.of({
        set: setToken(sql, ids, keys, statements),
        find: Effect.fn("HubConnections.find")((orgId, userId) =>
          statements.find({ orgId, userId }).pipe(
            Effect.map(
              (connection): Option.Option<Redacted.Redacted<string>> =>
                Option.map(connection, ({ sealed }) => Redacted.make(unseal(keys, sealed, ownerOf(orgId, userId))))
            ),
            Effect.orDie
          )
        ),
        findShared: Effect.fn("HubConnections.findShared")((orgId) =>
          statements
            .findShared(orgId)
            .pipe(Effect.map(Option.map(({ sealed, userId }) => Redacted.make(unseal(keys, sealed, ownerOf(orgId, userId))))), Effect.orDie)
        ),
        share: shareToken(sql, ids, statements),
        list: Effect.fn("HubConnections.list")((orgId) => Effect.orDie(statements.list(orgId))),
        remove: removeConnection(sql, ids, statements),
        rotateKey: rotateKey(sql, keys, statements)
      })
    })
  )
}
