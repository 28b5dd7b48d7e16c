import type { PgClient } from "@effect/sql-pg"
import { type DeploymentId, type ModelId, RevisionId } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import type { Runs } from "../Runs.ts"
import { differs } from "./nodeFaults.ts"

type Screened = Pick<Parameters<Runs["Service"]["recordScreening"]>[0], "engineImage" | "engineVersion" | "estimate" | "facts" | "orgId" | "settings">

/**
 * The model's verified revision with the same commit, engine version and image, GPU type and settings including flags.
 * Prefers the serving revision, then the newest candidate. Excludes superseded revisions, revisions whose engine failed
 * during an earlier reuse, and revisions whose engines give different answers since. Returns none while an older run of
 * the model is unfinished, because that run may supersede the revision.
 */
export const findVerified = (sql: PgClient.PgClient) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ id: RevisionId })))
  return Effect.fnUntraced(function* ({ engineImage, engineVersion, estimate, facts, orgId, settings }: Screened, id: DeploymentId, modelId: ModelId) {
    const base = facts.adapter?.base
    const rows = yield* sql`
      SELECT r.id FROM revisions r
      WHERE r.org_id = ${orgId} AND r.model_id = ${modelId} AND r.status IN ('draft', 'active') AND r.verified_at IS NOT NULL
        AND r.hf_repo = ${facts.repo} AND r.hf_revision = ${facts.commit} AND r.engine_version = ${engineVersion} AND r.engine_image = ${engineImage}
        AND r.base_hf_repo IS NOT DISTINCT FROM ${base?.repo ?? null} AND r.base_hf_revision IS NOT DISTINCT FROM ${base?.commit ?? null}
        AND r.gpu_pool = ${estimate.gpu_pool} AND r.gpu_count = ${estimate.gpu_count} AND r.settings = ${sql.json(settings)}
        AND (r.status = 'active' OR NOT EXISTS (SELECT FROM deployments f WHERE f.org_id = r.org_id AND f.revision_id = r.id AND f.phase = 'failed'))
        AND NOT ${differs(sql, "r")}
        AND NOT EXISTS (
          SELECT FROM deployments older JOIN deployments own ON own.org_id = older.org_id AND own.id = ${id}
          WHERE older.org_id = r.org_id AND older.model_id = r.model_id AND older.ended_at IS NULL
            AND (older.created_at, older.id) < (own.created_at, own.id)
        )
      ORDER BY r.status, r.created_at DESC, r.id DESC LIMIT 1`
    return Option.fromUndefinedOr((yield* decode(rows))[0]?.id)
  })
}
