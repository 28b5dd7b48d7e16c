import type { PgClient } from "@effect/sql-pg"
import { phasesWith } from "@seatrial/domain"
import { phaseList } from "./columns.ts"

const awaitingPhases = phaseList(phasesWith(({ awaitsGpus }) => awaitsGpus))

/**
 * Notifies the operator about every run of any organization that waits for GPUs, because its place in the queue may
 * have changed. Call it inside the transaction of the change.
 */
export const wakeWaiting = (sql: PgClient.PgClient, at: Date) => sql`
  WITH work AS (
    INSERT INTO outbox (org_id, deployment_id, created_at)
    SELECT org_id, id, ${at} FROM deployments WHERE ended_at IS NULL AND phase IN (${sql.literal(awaitingPhases)})
    RETURNING deployment_id
  )
  SELECT pg_notify('deployments', deployment_id) FROM work`
