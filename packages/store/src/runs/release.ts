import type { PgClient } from "@effect/sql-pg"
import { Clock, Effect } from "effect"
import { leads } from "../OperatorTerms.ts"
import type { Runs } from "../Runs.ts"

/** Records that the cluster has no objects of the finished run. */
export const release = (sql: PgClient.PgClient): Runs["Service"]["release"] =>
  Effect.fn("Runs.release")(function* (id, orgId) {
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* Effect.orDie(
      sql`UPDATE deployments SET released_at = ${at} WHERE ${yield* leads(sql)} AND org_id = ${orgId} AND id = ${id} AND ended_at IS NOT NULL AND released_at IS NULL`
    )
  })
