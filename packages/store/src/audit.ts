import type { PgClient } from "@effect/sql-pg"
import { type ActorKind, type AuditAction, AuditEventId, type AuditResource, type Ids, type OrgId, type UserId } from "@seatrial/domain"
import { Effect } from "effect"

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
  yield* sql`
    INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
    VALUES (${event.orgId}, ${new Date(event.at)}, ${id}, ${event.actorKind}, ${event.actorUserId ?? null}, ${event.resourceType}, ${event.resourceId},
      ${event.action}, ${JSON.stringify(event.before)}::jsonb, ${JSON.stringify(event.after)}::jsonb)`
})
