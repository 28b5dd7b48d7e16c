import { PgClient } from "@effect/sql-pg"
import type { OrgId, Suspicion, SuspicionId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import { leads } from "./OperatorTerms.ts"
import { recordOf, type SuspicionRow } from "./suspicionRecord.ts"

/** A suspicion that no webhook has accepted yet. */
export interface UnsentAlarm {
  readonly orgId: OrgId
  readonly id: SuspicionId
  /** Null if the engine's node was not known. */
  readonly node: string | null
  readonly suspicion: Omit<Suspicion, "requests">
}

interface UnsentRow extends Omit<SuspicionRow, "requests"> {
  readonly id: SuspicionId
  readonly org_id: OrgId
  readonly node: string | null
}

/** Alarms in one answer of `list`. */
const most = 100

/** The alarms that are sent to the webhook of the installation. */
export class UnsentAlarms extends Context.Service<
  UnsentAlarms,
  {
    /** The earliest alarms of the last day that were not sent. */
    readonly list: Effect.Effect<ReadonlyArray<UnsentAlarm>, SqlError.SqlError>
    /** Whether it is recorded: not if the operator no longer leads. */
    readonly markSent: (alarm: UnsentAlarm) => Effect.Effect<boolean, SqlError.SqlError>
  }
>()("seatrial/UnsentAlarms") {
  static readonly layerSql = Layer.effect(
    UnsentAlarms,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      return UnsentAlarms.of({
        list: Effect.gen(function* () {
          const rows = yield* sql<UnsentRow>`
            SELECT id, org_id, created_at, model_id, deployment_id, revision_id, pod, node, since, withdrawn_at, probes, evidence, engines
            FROM suspicions WHERE sent_at IS NULL AND created_at > now() - interval '1 day' ORDER BY created_at, id LIMIT ${most}`
          return rows.map((row) => ({ orgId: row.org_id, id: row.id, node: row.node, suspicion: recordOf(row) }))
        }).pipe(Effect.withSpan("UnsentAlarms.list")),
        markSent: Effect.fn("UnsentAlarms.markSent")(function* ({ id, orgId, suspicion }) {
          const at = new Date(yield* Clock.currentTimeMillis)
          const marked = yield* sql`
            UPDATE suspicions SET sent_at = ${at}
            WHERE org_id = ${orgId} AND created_at = ${new Date(suspicion.created_at)} AND id = ${id} AND ${yield* leads(sql)} RETURNING 1`
          return marked.length > 0
        })
      })
    })
  )
}
