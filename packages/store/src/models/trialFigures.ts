import type { PgClient } from "@effect/sql-pg"
import { Benchmark, type Fit, Measured, type ModelId, medianStart, type OrgId, RevisionId, StartKind, StartParts } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { Estimate } from "../runs/observe.ts"

/** Number of newest starts for a median. */
const lastStarts = 5

const Row = Schema.Struct({
  revision_id: RevisionId,
  status: Schema.Literals(["draft", "active", "superseded"]),
  commit: Schema.String,
  engine_version: Schema.String,
  host_class: Schema.String,
  estimate: Estimate,
  measured: Measured,
  benchmark: Schema.NullOr(Benchmark),
  starts: Schema.Array(Schema.Struct({ kind: StartKind, parts: StartParts }))
})

/** The measurements of a model's trial, together with the estimates. */
export interface TrialFigures extends Omit<typeof Row.Type, "estimate" | "starts"> {
  readonly estimate: Pick<Fit, "calibrated" | "unmeasured" | "gpu_count" | "gpu_pool" | "headroom_bytes" | "kv_cache_bytes" | "verdict" | "weights_bytes">
  /** Medians of the last five starts with the same commit, engine version and GPUs, of each kind, in seconds. */
  readonly starts: ReadonlyArray<{ readonly kind: StartKind; readonly of: number; readonly median: StartParts }>
}

/** Figures of the serving revision, or of the newest measured revision if none serves. */
export const trialFigures = (sql: PgClient.PgClient): ((orgId: OrgId, id: ModelId) => Effect.Effect<Option.Option<TrialFigures>>) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Row,
    execute: ({ id, orgId }) => sql`
      SELECT r.id AS revision_id, r.status, r.hf_revision AS commit, r.engine_version, r.settings ->> 'host_class' AS host_class, r.estimate, r.measured, r.benchmark,
        coalesce((SELECT json_agg(json_build_object('kind', s.kind, 'parts', s.parts)) FROM (
          SELECT s.kind, s.parts, row_number() OVER (PARTITION BY s.kind ORDER BY s.created_at DESC, s.pod_uid) AS age
          FROM engine_starts s JOIN revisions other ON other.org_id = s.org_id AND other.id = s.revision_id
          WHERE s.org_id = r.org_id AND other.hf_repo = r.hf_repo AND other.hf_revision = r.hf_revision AND other.engine_version = r.engine_version
            AND other.gpu_pool = r.gpu_pool AND other.gpu_count = r.gpu_count
        ) s WHERE s.age <= ${lastStarts}), '[]') AS starts
      FROM revisions r
      WHERE r.org_id = ${orgId} AND r.model_id = ${id} AND r.measured IS NOT NULL
      ORDER BY r.status = 'active' DESC, r.created_at DESC, r.id DESC LIMIT 1`
  })
  const kinds = ["cold", "warm"] as const
  return Effect.fn("ModelAdmin.figures")(function* (orgId, id) {
    const row = yield* Effect.orDie(find({ orgId, id }))
    return Option.map(row, ({ starts, ...figures }) => ({
      ...figures,
      starts: kinds.flatMap((kind) => {
        const parts = starts.filter((start) => start.kind === kind).map((start) => start.parts)
        return parts.length === 0 ? [] : [{ kind, of: parts.length, median: medianStart(parts) }]
      })
    }))
  })
}
