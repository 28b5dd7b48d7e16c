import type { PgClient } from "@effect/sql-pg"
import { type Ids, type InvitationId, type OrgId, UserId } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "./audit.ts"

export interface User {
  readonly id: UserId
  readonly email: string
  readonly name: string
}
export const UserRow = Schema.Struct({ id: UserId, email: Schema.String, name: Schema.String })

export type Role = "owner" | "member"
export const Role = Schema.Literals(["owner", "member"])

/**
 * Creates the membership and its audit event if it is missing, and the user if the address is new. Call it inside a
 * transaction. `joined` is false if the user was already a member; the role then stays.
 */
export const join = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  ids: Ids["Service"],
  input: {
    readonly orgId: OrgId
    readonly email: string
    readonly name: string
    readonly role: Role
    readonly invitationId?: InvitationId
    readonly at: number
  }
) {
  const at = new Date(input.at)
  const email = input.email.toLowerCase()
  const fresh = yield* ids.make(UserId, input.at)
  yield* sql`INSERT INTO users (id, email, name, created_at) VALUES (${fresh}, ${email}, ${input.name}, ${at}) ON CONFLICT (email) DO NOTHING`
  const user = yield* SqlSchema.findOne({
    Request: Schema.String,
    Result: UserRow,
    execute: (address) => sql`SELECT id, email, name FROM users WHERE email = ${address}`
  })(email)
  const rows = yield* sql`
    INSERT INTO memberships (org_id, user_id, role, created_at) VALUES (${input.orgId}, ${user.id}, ${input.role}, ${at})
    ON CONFLICT (org_id, user_id) DO NOTHING RETURNING 1`
  const joined = rows.length > 0
  if (joined) {
    yield* writeAudit(sql, ids, {
      orgId: input.orgId,
      actorKind: "admin",
      resourceType: "membership",
      resourceId: user.id,
      action: "joined",
      before: null,
      after: { email, role: input.role, ...(input.invitationId === undefined ? {} : { invitation_id: input.invitationId }) },
      at: input.at
    })
  }
  return { user, joined }
})
