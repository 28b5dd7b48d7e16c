import type { PgClient } from "@effect/sql-pg"
import { type ActorKind, type AuditAction, AuditEventId, type AuditResource, type Ids, type OrgId, type UserId } from "@seatrial/domain"
import { Context, Effect } from "effect"

/** The name of the administrator for whom this program acts, at most 58 characters; null if nobody gave one. Audit events of actor kind `admin` name it as `admin:NAME`. */
export const Administrator = Context.Reference<string | null>("seatrial/Administrator", { defaultValue: () => null })

/** One change as it is told to the organisation's auditors. `before` and `after` are JSON and hold no secret. */
export interface AuditEvent {
  readonly orgId: OrgId
  readonly actorKind: ActorKind
  readonly actorUserId?: UserId | null
  readonly resourceType: AuditResource
  readonly resourceId: string
  readonly action: AuditAction
  readonly before: unknown
  readonly after: unknown
  /** Unix milliseconds. */
  readonly at: number
}

/** Writes the event; to be called inside the transaction of the change. */
export const writeAudit = Effect.fnUntraced(function* (sql: PgClient.PgClient, ids: Ids["Service"], event: AuditEvent) {
  const id = yield* ids.make(AuditEventId, event.at)
  const administrator = event.actorKind === "admin" ? yield* Administrator : null
  const actor = event.actorUserId ?? (administrator === null ? null : `admin:${administrator}`)
  yield* sql`
    INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
    VALUES (${event.orgId}, ${new Date(event.at)}, ${id}, ${event.actorKind}, ${actor}, ${event.resourceType}, ${event.resourceId},
      ${event.action}, ${JSON.stringify(event.before)}::jsonb, ${JSON.stringify(event.after)}::jsonb)`
})
