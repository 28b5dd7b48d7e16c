import type { PgClient } from "@effect/sql-pg"
import { type ActorKind, type AuditAction, AuditEventId, type AuditResource, type Ids, type OrgId, type UserId } from "@seatrial/domain"
import { Context, Effect } from "effect"

/**
 * The name of the administrator who uses this program, at most 58 characters; null if none is set. Audit events of
 * actor kind `admin` contain it as `admin:NAME`.
 */
export const Administrator = Context.Reference<string | null>("seatrial/Administrator", { defaultValue: () => null })

/** One audit event of an organization. `before` and `after` are JSON and contain no secrets. */
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

/** Writes the event. Call it inside the transaction of the change. */
export const writeAudit = Effect.fnUntraced(function* (sql: PgClient.PgClient, ids: Ids["Service"], event: AuditEvent) {
  const id = yield* ids.make(AuditEventId, event.at)
  const administrator = event.actorKind === "admin" ? yield* Administrator : null
  const actor = event.actorUserId ?? (administrator === null ? null : `admin:${administrator}`)
  yield* sql`
    INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
    VALUES (${event.orgId}, ${new Date(event.at)}, ${id}, ${event.actorKind}, ${actor}, ${event.resourceType}, ${event.resourceId},
      ${event.action}, ${JSON.stringify(event.before)}::jsonb, ${JSON.stringify(event.after)}::jsonb)`
})
