import type { PgClient } from "@effect/sql-pg"
import { type Ids, ModelId, RevisionId } from "@seatrial/domain"
import { Clock, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { writeAudit } from "../audit.ts"
import { isOwnWrite, whileLeading } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"
import { findVerified } from "./findVerified.ts"

type Screening = Parameters<Runs["Service"]["recordScreening"]>[0]

/** Creates the draft revision of the run. The model takes its commit unless a revision of it serves. */
const insertDraft = (
  sql: PgClient.PgClient,
  {
    at,
    capabilities,
    engineVersion,
    estimate,
    facts,
    id,
    modelId,
    orgId,
    placements = [],
    revisionId,
    settings
  }: Screening & {
    readonly revisionId: RevisionId
    readonly modelId: ModelId
    readonly at: Date
  }
) => {
  const base = facts.adapter?.base
  return sql`
    WITH inserted AS (INSERT INTO revisions (id, org_id, model_id, status, hf_repo, hf_revision, facts, settings, runtime, engine_version, estimate, dtype, quantization,
      max_model_len, gpu_pool, gpu_count, capabilities, base_hf_repo, base_hf_revision, adapter_content_hash, created_at, updated_at)
    VALUES (${revisionId}, ${orgId}, ${modelId}, 'draft', ${facts.repo}, ${facts.commit}, ${sql.json(facts)}, ${sql.json(settings)}, ${settings.runtime},
      ${engineVersion}, ${sql.json(estimate)}, ${facts.config.dtype}, ${facts.config.quantization}, ${settings.max_context}, ${estimate.gpu_pool},
      ${estimate.gpu_count}, ${sql.json(capabilities)}, ${base?.repo ?? null}, ${base?.commit ?? null}, ${facts.adapter?.content_hash ?? null}, ${at}, ${at})),
    model AS (UPDATE models SET hf_revision = ${facts.commit}, updated_at = ${at} WHERE org_id = ${orgId} AND id = ${modelId} AND active_revision_id IS NULL)
    UPDATE deployments SET revision_id = ${revisionId}, placements = ${placements.length > 1 ? sql.json(placements) : null}, updated_at = greatest(updated_at, ${at}) WHERE org_id = ${orgId} AND id = ${id}`
}

/**
 * Creates the run's draft revision from the result of screening, or reuses the verified revision with the same
 * configuration. A second call in `screening` changes nothing.
 */
export const recordScreening = (sql: PgClient.PgClient, ids: Ids["Service"]): Runs["Service"]["recordScreening"] => {
  // Locks the model first, in the same order as all statements that lock both.
  const lockRun = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Schema.Struct({ modelId: ModelId, revisionId: Schema.NullOr(RevisionId) }),
    execute: ({ id, orgId }) => sql`
      SELECT d.model_id AS "modelId", d.revision_id AS "revisionId"
      FROM models m JOIN deployments d ON d.org_id = m.org_id AND d.model_id = m.id
      WHERE d.org_id = ${orgId} AND d.id = ${id} AND d.phase = 'screening'
      FOR NO KEY UPDATE OF m FOR UPDATE OF d`
  })
  const verified = findVerified(sql)
  /** If the request permits several serving options, the first verified one avoids another trial. */
  const findReusable = Effect.fnUntraced(function* (input: Screening, modelId: ModelId) {
    const { facts, id, orgId, placements = [] } = input
    let earlier = yield* verified(input, id, modelId)
    for (const plan of placements.slice(1)) if (Option.isNone(earlier)) earlier = yield* verified({ ...plan, facts, orgId }, id, modelId)
    return earlier
  })

  return Effect.fn("Runs.recordScreening")(function* (input) {
    const { engineVersion, facts, id, orgId, settings } = input
    const now = yield* Clock.currentTimeMillis
    const at = new Date(now)
    const revisionId = yield* ids.make(RevisionId, now)
    const own = yield* isOwnWrite
    return yield* Effect.gen(function* () {
      const run = yield* lockRun({ orgId, id })
      if (Option.isNone(run)) return false
      if (run.value.revisionId !== null) return true
      const { modelId } = run.value
      const earlier = yield* findReusable(input, modelId)
      if (Option.isSome(earlier)) {
        yield* sql`UPDATE deployments SET revision_id = ${earlier.value}, updated_at = greatest(updated_at, ${at}) WHERE org_id = ${orgId} AND id = ${id}`
        if (!own) yield* sql`SELECT pg_notify('deployments', ${id})`
        return true
      }
      yield* insertDraft(sql, { ...input, revisionId, modelId, at })
      yield* writeAudit(sql, ids, {
        orgId,
        actorKind: "system",
        resourceType: "model_config",
        resourceId: revisionId,
        action: "created",
        before: null,
        after: { model_id: modelId, deployment_id: id, hf_revision: facts.commit, settings, engine_version: engineVersion },
        at: now
      })
      if (!own) yield* sql`SELECT pg_notify('deployments', ${id})`
      return true
    }).pipe((record) => whileLeading(sql, record), Effect.orDie)
  })
}
