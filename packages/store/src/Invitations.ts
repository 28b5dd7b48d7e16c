import { hash, randomBytes } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { Ids, InvitationId, OrgId } from "@seatrial/domain"
import { Clock, Context, Data, Effect, Layer, Option, Redacted, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"
import { IsoFromDate } from "./columns.ts"
import { join, Role, type User } from "./join.ts"

const InvitationRow = Schema.Struct({
  id: InvitationId,
  orgId: OrgId,
  email: Schema.String,
  role: Role,
  /** At the time of the query. */
  status: Schema.Literals(["pending", "accepted", "withdrawn", "expired"]),
  createdAt: IsoFromDate,
  expiresAt: IsoFromDate
})
export type Invitation = typeof InvitationRow.Type

/** The address already belongs to a member, or it has a pending invitation. */
export class InvitationConflict extends Data.TaggedError("InvitationConflict")<{ readonly reason: "member" | "pending" }> {}

/** The token is unknown, or its invitation has expired, was withdrawn or was already accepted. */
export class InvitationInvalid extends Data.TaggedError("InvitationInvalid") {}

const makeToken = () => `seatrial_invite_${randomBytes(32).toString("base64url")}`
const sha256Of = (text: string) => hash("sha256", text, "buffer")

const invitationStatements = (sql: PgClient.PgClient) => {
  const columns = (now: Date) => sql`
    id, org_id AS "orgId", email, role, created_at AS "createdAt", expires_at AS "expiresAt",
    CASE WHEN accepted_at IS NOT NULL THEN 'accepted' WHEN withdrawn_at IS NOT NULL THEN 'withdrawn' WHEN expires_at <= ${now} THEN 'expired' ELSE 'pending' END
      AS status`
  const insert = SqlSchema.findOne({
    Request: Schema.Struct({
      orgId: OrgId,
      id: InvitationId,
      email: Schema.String,
      role: Role,
      sha256: Schema.Uint8Array,
      at: Schema.Date,
      expiresAt: Schema.Date
    }),
    Result: InvitationRow,
    execute: (row) => sql`
      INSERT INTO invitations (org_id, id, email, role, token_sha256, created_at, expires_at)
      VALUES (${row.orgId}, ${row.id}, ${row.email}, ${row.role}, ${row.sha256}, ${row.at}, ${row.expiresAt}) RETURNING ${columns(row.at)}`
  })
  const list = SqlSchema.findAll({
    Request: Schema.Struct({ orgId: OrgId, now: Schema.Date }),
    Result: InvitationRow,
    execute: ({ now, orgId }) => sql`SELECT ${columns(now)} FROM invitations WHERE org_id = ${orgId} ORDER BY id DESC`
  })
  const withdraw = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: OrgId, id: InvitationId, now: Schema.Date }),
    Result: InvitationRow,
    execute: ({ id, now, orgId }) => sql`
      UPDATE invitations SET withdrawn_at = ${now}
      WHERE org_id = ${orgId} AND id = ${id} AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > ${now} RETURNING ${columns(now)}`
  })
  const lockPending = SqlSchema.findOneOption({
    Request: Schema.Struct({ sha256: Schema.Uint8Array, now: Schema.Date }),
    Result: InvitationRow,
    // The token determines the organization: only its holder can run this query.
    execute: ({ now, sha256 }) => sql`
      SELECT ${columns(now)} FROM invitations
      WHERE token_sha256 = ${sha256} AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > ${now} FOR UPDATE`
  })
  return { insert, list, lockPending, withdraw }
}
type Statements = ReturnType<typeof invitationStatements>

const sendInvitation = (sql: PgClient.PgClient, ids: Ids["Service"], { insert, list }: Statements): Invitations["Service"]["send"] =>
  Effect.fn("Invitations.send")(function* (input) {
    const at = yield* Clock.currentTimeMillis
    const now = new Date(at)
    const email = input.email.toLowerCase()
    const id = yield* ids.make(InvitationId, at)
    const token = makeToken()
    const invitation = yield* Effect.gen(function* () {
      // Serializes concurrent invitations, so that the second one sees the first.
      yield* sql`SELECT 1 FROM organizations WHERE id = ${input.orgId} FOR NO KEY UPDATE`
      const members = yield* sql`
        SELECT 1 FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.org_id = ${input.orgId} AND u.email = ${email}`
      if (members.length > 0) return yield* new InvitationConflict({ reason: "member" })
      const pending = (yield* list({ orgId: input.orgId, now })).some((sent) => sent.email === email && sent.status === "pending")
      if (pending) return yield* new InvitationConflict({ reason: "pending" })
      const created = yield* insert({
        orgId: input.orgId,
        id,
        email,
        role: input.role,
        sha256: sha256Of(token),
        at: now,
        expiresAt: new Date(input.expiresAt)
      })
      yield* writeAudit(sql, ids, {
        orgId: input.orgId,
        actorKind: "admin",
        resourceType: "invitation",
        resourceId: id,
        action: "invited",
        before: null,
        after: { email, role: input.role, expires_at: created.expiresAt },
        at
      })
      return created
    }).pipe(
      sql.withTransaction,
      Effect.catchIf((error) => error._tag !== "InvitationConflict", Effect.die)
    )
    return { invitation, token: Redacted.make(token) }
  })

const withdrawInvitation = (sql: PgClient.PgClient, ids: Ids["Service"], { withdraw }: Statements): Invitations["Service"]["withdraw"] =>
  Effect.fn("Invitations.withdraw")(function* (orgId, id) {
    const at = yield* Clock.currentTimeMillis
    return yield* Effect.gen(function* () {
      const withdrawn = yield* withdraw({ orgId, id, now: new Date(at) })
      if (Option.isNone(withdrawn)) return withdrawn
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "admin",
        resourceType: "invitation",
        resourceId: id,
        action: "revoked",
        before: { status: "pending" },
        after: { status: "withdrawn" },
        at
      })
      return withdrawn
    }).pipe(sql.withTransaction, Effect.orDie)
  })

const acceptInvitation = (sql: PgClient.PgClient, ids: Ids["Service"], { lockPending }: Statements): Invitations["Service"]["accept"] =>
  Effect.fn("Invitations.accept")(function* (token, name) {
    const at = yield* Clock.currentTimeMillis
    const now = new Date(at)
    return yield* Effect.gen(function* () {
      const row = yield* lockPending({ sha256: sha256Of(Redacted.value(token)), now })
      if (Option.isNone(row)) return yield* new InvitationInvalid()
      const { email, id, orgId, role } = row.value
      const { user } = yield* join(sql, ids, { orgId, email, name: Option.getOrElse(name, () => email), role, invitationId: id, at })
      yield* sql`UPDATE invitations SET accepted_at = ${now}, accepted_user_id = ${user.id} WHERE org_id = ${orgId} AND id = ${id}`
      const invitation: Invitation = { ...row.value, status: "accepted" }
      return { invitation, user }
    }).pipe(
      sql.withTransaction,
      Effect.catchIf((error) => error._tag !== "InvitationInvalid", Effect.die)
    )
  })

/**
 * Invitations to an organization. Only the SHA-256 of a token is stored. Each change writes its audit event, as actor
 * `admin`.
 */
export class Invitations extends Context.Service<
  Invitations,
  {
    /** Returns the token; it cannot be read again. `expiresAt` in Unix milliseconds. */
    readonly send: (input: {
      readonly orgId: OrgId
      readonly email: string
      readonly role: Role
      readonly expiresAt: number
    }) => Effect.Effect<{ readonly invitation: Invitation; readonly token: Redacted.Redacted<string> }, InvitationConflict>
    /** Newest first. */
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<Invitation>>
    /** None if the organization has no such pending invitation. */
    readonly withdraw: (orgId: OrgId, id: InvitationId) => Effect.Effect<Option.Option<Invitation>>
    /**
     * Creates the membership, and the user if the address is new. A token is invalid from the exact time of its expiry.
     */
    readonly accept: (
      token: Redacted.Redacted<string>,
      name: Option.Option<string>
    ) => Effect.Effect<{ readonly invitation: Invitation; readonly user: User }, InvitationInvalid>
  }
>()("seatrial/Invitations") {
  static readonly layerSql = Layer.effect(
    Invitations,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids

      const statements = invitationStatements(sql)

      return Invitations.of({
        send: sendInvitation(sql, ids, statements),
        list: Effect.fn("Invitations.list")(function* (orgId) {
          return yield* Effect.orDie(statements.list({ orgId, now: new Date(yield* Clock.currentTimeMillis) }))
        }),
        withdraw: withdrawInvitation(sql, ids, statements),
        accept: acceptInvitation(sql, ids, statements)
      })
    })
  )
}
