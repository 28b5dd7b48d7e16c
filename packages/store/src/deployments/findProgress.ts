import type { PgClient } from "@effect/sql-pg"
import { type DeploymentId, DownloadProgress, type OrgId, Phase, phaseMessage, QueueProgress, type RunProgress, type Timestamp } from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { IsoFromDate } from "../columns.ts"

/** The progress of a run, and when it was recorded. */
export interface ShownProgress extends RunProgress {
  readonly updatedAt: typeof Timestamp.Type
}

const Row = Schema.Struct({
  phase: Phase,
  phaseSince: IsoFromDate,
  reason: Schema.NullOr(Schema.String),
  failure: Schema.NullOr(Schema.String),
  recorded: Schema.NullOr(Schema.String),
  queue: Schema.NullOr(QueueProgress),
  download: Schema.NullOr(DownloadProgress),
  recordedAt: Schema.NullOr(IsoFromDate)
})

/**
 * Reads the progress of one run of the organization. If the operator has not recorded progress of the current phase
 * yet, the reason of the phase is returned.
 */
export const findProgress = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
    Result: Row,
    execute: ({ id, orgId }) => sql`
      SELECT d.phase, d.phase_since AS "phaseSince", p.reason, d.failure_code || ': ' || d.failure_text AS failure,
        g.message AS recorded, g.queue, g.download, g.updated_at AS "recordedAt"
      FROM deployments d
      LEFT JOIN deployment_phases p ON p.deployment_id = d.id AND p.seq = d.phase_count
      LEFT JOIN deployment_progress g ON g.org_id = d.org_id AND g.deployment_id = d.id AND g.phase = d.phase
      WHERE d.org_id = ${orgId} AND d.id = ${id}`
  })
  return Effect.fn("Deployments.progress")(function* (orgId: OrgId, id: DeploymentId) {
    const row = yield* Effect.orDie(find({ orgId, id }))
    return Option.map(
      row,
      ({ download, failure, phase, phaseSince, queue, reason, recorded, recordedAt }): ShownProgress => ({
        phase,
        message: recorded ?? failure ?? phaseMessage(phase, reason),
        queue,
        download,
        updatedAt: recordedAt ?? phaseSince
      })
    )
  })
}
