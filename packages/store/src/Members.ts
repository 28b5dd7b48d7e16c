import { PgClient } from "@effect/sql-pg"
import { Ids, KeyId, type OrgId, UserId } from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { IsoFromDate } from "./columns.ts"
import { Role } from "./join.ts"

const MemberRow = Schema.Struct({ userId: UserId, email: Schema.String, name: Schema.String, role: Role, hubConnected: Schema.Boolean, createdAt: IsoFromDate })
export type Member = typeof MemberRow.Type

const UserWithOrganizations = Schema.Struct({
  id: UserId,
  email: Schema.String,
  name: Schema.String,
  createdAt: IsoFromDate,
  /** Slugs, sorted. */
  organizations: Schema.Array(Schema.String)
})

/** The organization would have no owner. */
export class LastOwner extends Data.TaggedError("LastOwner") {}

/** The statements of members. `hold` and `keepOwner` must run in the transaction of the change. */
const memberStatements = (sql: PgClient.PgClient) => {
  const columns = sql.literal(`
    u.id AS "userId", u.email, u.name, m.role, m.created_at AS "createdAt",
    EXISTS (SELECT 1 FROM hub_connections h WHERE h.org_id = m.org_id AND h.user_id = m.user_id) AS "hubConnected"`)
  const list = SqlSchema.findAll({
    Request: Schema.String,
    Result: MemberRow,
    execute: (orgId) => sql`SELECT ${columns} FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.org_id = ${orgId} ORDER BY u.email`
  })
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, userId: Schema.String }),
    Result: MemberRow,
    execute: ({ orgId, userId }) =>
      sql`SELECT ${columns} FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.org_id = ${orgId} AND m.user_id = ${userId}`
  })
  const users = SqlSchema.findAll({
    Request: Schema.Struct({ text: Schema.String, limit: Schema.Int }),
    Result: UserWithOrganizations,
    execute: ({ limit, text }) => sql`
      SELECT u.id, u.email, u.name, u.created_at AS "createdAt", ARRAY(
        SELECT o.slug FROM memberships m JOIN organizations o ON o.id = m.org_id WHERE m.user_id = u.id ORDER BY o.slug) AS organizations
      FROM users u WHERE position(lower(${text}) in lower(u.email)) > 0 OR position(lower(${text}) in lower(u.name)) > 0 ORDER BY u.email LIMIT ${limit}`
  })
  const revokeKeys = SqlSchema.findAll({
    Request: Schema.Struct({ orgId: Schema.String, userId: Schema.String, at: Schema.Date }),
    Result: Schema.Struct({ id: KeyId }),
    execute: ({ at, orgId, userId }) => sql`
      UPDATE api_keys SET revoked_at = ${at} WHERE org_id = ${orgId} AND user_id = ${userId} AND revoked_at IS NULL RETURNING id, pg_notify('api_keys', id)`
  })

  /**
   * Reads the member and locks the organization: of two concurrent removals of owners, the second sees the first.
   */
  const hold = Effect.fnUntraced(function* (orgId: OrgId, userId: UserId) {
    yield* sql`SELECT 1 FROM organizations WHERE id = ${orgId} FOR NO KEY UPDATE`
    return yield* find({ orgId, userId })
  })
  const keepOwner = Effect.fnUntraced(function* (orgId: OrgId, member: Member) {
    if (member.role !== "owner") return
    const otherOwners = yield* sql`SELECT 1 FROM memberships WHERE org_id = ${orgId} AND role = 'owner' AND user_id <> ${member.userId} LIMIT 1`
    if (otherOwners.length === 0) return yield* new LastOwner()
  })

  return { hold, keepOwner, list, revokeKeys, users }
}
type Statements = ReturnType<typeof memberStatements>

const changeRole = (sql: PgClient.PgClient, ids: Ids["Service"], { hold, keepOwner }: Statements): Members["Service"]["changeRole"] =>
  Effect.fn("Members.changeRole")(function* (orgId, userId, role) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const member = yield* hold(orgId, userId)
      if (Option.isNone(member) || member.value.role === role) return member
      yield* keepOwner(orgId, member.value)
      yield* sql`UPDATE memberships SET role = ${role} WHERE org_id = ${orgId} AND user_id = ${userId}`
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "admin",
        resourceType: "membership",
        resourceId: userId,
        action: "role_changed",
        before: { role: member.value.role },
        after: { role },
        at
      })
      return Option.some<Member>({ ...member.value, role })
    }).pipe(
      sql.withTransaction,
      Effect.catchIf((error) => error._tag !== "LastOwner", Effect.die)
    )
  })

const removeMember = (sql: PgClient.PgClient, ids: Ids["Service"], { hold, keepOwner, revokeKeys }: Statements): Members["Service"]["remove"] =>
  Effect.fn("Members.remove")(function* (orgId, userId) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const member = yield* hold(orgId, userId)
      if (Option.isNone(member)) return Option.none()
      yield* keepOwner(orgId, member.value)
      // Delete the membership first: a concurrent key creation locks it, so the new key is visible afterward and
      // is revoked.
      yield* sql`DELETE FROM memberships WHERE org_id = ${orgId} AND user_id = ${userId}`
      const keys = (yield* revokeKeys({ orgId, userId, at: new Date(at) })).map(({ id }) => id)
      const { email, hubConnected, role } = member.value
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "admin",
        resourceType: "membership",
        resourceId: userId,
        action: "removed",
        before: { email, role, hub_connected: hubConnected },
        after: null,
        at
      })
      for (const id of keys) {
        yield* writeAudit(sql, ids, {
          orgId,
          actorKind: "admin",
          resourceType: "api_key",
          resourceId: id,
          action: "revoked",
          before: { revoked_at: null },
          after: { revoked_at: new Date(at).toISOString() },
          at
        })
      }
      return Option.some(keys)
    }).pipe(
      sql.withTransaction,
      Effect.catchIf((error) => error._tag !== "LastOwner", Effect.die)
    )
  })

/** The members of an organization. Each change writes its audit events in the same transaction, as actor `admin`. */
export class Members extends Context.Service<
  Members,
  {
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<Member>>
    /** Users of all organizations whose address or name contains the text, by address, at most `limit`. */
    readonly users: (text: string, limit: number) => Effect.Effect<ReadonlyArray<typeof UserWithOrganizations.Type>>
    /** None if the user is not a member. */
    readonly changeRole: (orgId: OrgId, userId: UserId, role: Role) => Effect.Effect<Option.Option<Member>, LastOwner>
    /**
     * Ends the membership, revokes the user's keys and deletes their hub token. Returns the IDs of the keys. None if
     * the user is not a member.
     */
    readonly remove: (orgId: OrgId, userId: UserId) => Effect.Effect<Option.Option<ReadonlyArray<KeyId>>, LastOwner>
  }
>()("seatrial/Members") {
  static readonly layerSql = Layer.effect(
    Members,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const statements = memberStatements(sql)
      return Members.of({
        list: Effect.fn("Members.list")((orgId) => Effect.orDie(statements.list(orgId))),
        users: Effect.fn("Members.users")((text, limit) => Effect.orDie(statements.users({ text, limit }))),
        changeRole: changeRole(sql, ids, statements),
        remove: removeMember(sql, ids, statements)
      })
    })
  )
}
