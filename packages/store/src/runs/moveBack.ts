import type { PgClient } from "@effect/sql-pg"
import { DeploymentId, type Ids, ModelId, type OrgId, RevisionId } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "../audit.ts"
import { whileLeading } from "../OperatorTerms.ts"
import { interchangeable } from "../routes/interchangeable.ts"

const Counter = Schema.Struct({
  /** Names the gateway and the engine. */
  key: Schema.String,
  isEarlier: Schema.Boolean,
  answered: Schema.Finite,
  failed: Schema.Finite
})

/** The requests that the engines of both revisions answered, by gateway and engine, since the move began. */
const MoveAnswers = Schema.Struct({
  /** The earlier revision that still serves and that the model may return to. */
  to: RevisionId,
  counters: Schema.Array(Counter)
})
export type MoveAnswers = typeof MoveAnswers.Type

/**
 * What gateways report of the engines of the serving revision and of the newest earlier one that still answers; none if
 * there is none, or if the model has already returned from it.
 */
export const moveAnswers = (sql: PgClient.PgClient): ((id: DeploymentId, orgId: OrgId) => Effect.Effect<Option.Option<MoveAnswers>>) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ id: Schema.String, orgId: Schema.String }),
    Result: MoveAnswers,
    execute: ({ id, orgId }) => sql`
      SELECT earlier.id AS to,
        coalesce((SELECT json_agg(json_build_object('key', l.gateway_id || ' ' || l.pod, 'isEarlier', e.revision_id = earlier.id, 'answered', l.answered, 'failed', l.failed))
          FROM endpoints e JOIN endpoint_loads l ON l.model_id = d.model_id AND l.pod = e.pod
          WHERE e.org_id = d.org_id AND e.revision_id IN (r.id, earlier.id)), '[]') AS counters
      FROM deployments d
      JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
      JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id AND r.status = 'active'
      JOIN LATERAL (
        SELECT s.id FROM revisions s
        WHERE s.org_id = d.org_id AND s.model_id = d.model_id AND s.left_at IS NULL AND ${sql.literal(interchangeable("r", "s"))}
          AND EXISTS (SELECT FROM endpoints e WHERE e.org_id = s.org_id AND e.revision_id = s.id AND e.reachable_at IS NOT NULL)
        ORDER BY s.created_at DESC, s.id DESC LIMIT 1
      ) earlier ON true
      WHERE d.org_id = ${orgId} AND d.id = ${id}`
  })
  return Effect.fn("Runs.moveAnswers")((id, orgId) => Effect.orDie(find({ id, orgId })))
}

const Moved = Schema.Struct({
  modelId: ModelId,
  revisionId: RevisionId,
  hfRevision: Schema.String,
  engineImage: Schema.NullOr(Schema.String),
  engineDigest: Schema.NullOr(Schema.String),
  deploymentId: DeploymentId
})

/** Locks the model first, like an activation. */
const makeLock = (sql: PgClient.PgClient) =>
  SqlSchema.findOneOption({
    Request: Schema.Struct({ id: Schema.String, orgId: Schema.String, to: Schema.String }),
    Result: Moved,
    execute: ({ id, orgId, to }) => sql`
      SELECT m.id AS "modelId", r.id AS "revisionId", s.hf_revision AS "hfRevision", s.engine_image AS "engineImage", s.engine_digest AS "engineDigest",
        (SELECT maker.id FROM deployments maker WHERE maker.org_id = s.org_id AND maker.revision_id = s.id ORDER BY maker.created_at, maker.id LIMIT 1) AS "deploymentId"
      FROM models m
      JOIN deployments d ON d.org_id = m.org_id AND d.model_id = m.id
      JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
      JOIN revisions s ON s.org_id = m.org_id AND s.model_id = m.id AND s.id = ${to}
      WHERE d.org_id = ${orgId} AND d.id = ${id} AND m.active_revision_id = r.id AND r.status = 'active' AND s.status = 'superseded' AND s.left_at IS NULL
        AND m.deleted_at IS NULL
      FOR UPDATE OF m, r, s`
  })

/**
 * Routes the model's requests to an earlier revision again, in one transaction: the run's revision becomes a superseded
 * one that the model does not return to by itself, and the audit event is written. False if the run's revision does not
 * serve any more, or the earlier one cannot.
 */
export const moveBack = (sql: PgClient.PgClient, ids: Ids["Service"]) => {
  const lock = makeLock(sql)
  return Effect.fn("Runs.moveBack")(function* ({ id, orgId, reason, to }: { id: DeploymentId; orgId: OrgId; to: RevisionId; reason: string }) {
    const at = new Date(yield* Clock.currentTimeMillis)
    return yield* Effect.gen(function* () {
      const locked = yield* lock({ id, orgId, to })
      if (Option.isNone(locked)) return false
      const { deploymentId, engineDigest, engineImage, hfRevision, modelId, revisionId } = locked.value
      yield* sql`UPDATE revisions SET status = 'superseded', left_at = ${at}, updated_at = ${at} WHERE org_id = ${orgId} AND id = ${revisionId}`
      yield* sql`UPDATE revisions SET status = 'active', updated_at = ${at} WHERE org_id = ${orgId} AND id = ${to}`
      yield* sql`
        UPDATE models SET active_revision_id = ${to}, hf_revision = ${hfRevision}, updated_at = ${at}
        WHERE org_id = ${orgId} AND id = ${modelId} RETURNING pg_notify('routes', active_revision_id)`
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "system",
        resourceType: "model_config",
        resourceId: modelId,
        action: "activated",
        before: { revision_id: revisionId },
        after: {
          revision_id: to,
          deployment_id: deploymentId,
          hf_revision: hfRevision,
          engine_image: engineImage,
          ...(engineDigest === null ? {} : { engine_digest: engineDigest }),
          reason
        },
        at: at.getTime()
      })
      yield* sql`
        WITH work AS (
          INSERT INTO outbox (org_id, deployment_id, created_at)
          SELECT org_id, id, ${at} FROM deployments WHERE org_id = ${orgId} AND revision_id IN (${revisionId}, ${to}) RETURNING deployment_id
        )
        SELECT pg_notify('deployments', deployment_id) FROM work`
      return true
    }).pipe((transition) => whileLeading(sql, transition), Effect.orDie)
  })
}
