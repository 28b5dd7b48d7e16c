import type { PgClient } from "@effect/sql-pg"
import { DeploymentId, OrgId } from "@seatrial/domain"
import { Clock, Effect, Option, Schedule, Schema, Stream } from "effect"
import { SqlSchema } from "effect/sql"
import { type ListenEvent, listen } from "../listen.ts"
import { leads, whileLeading } from "../OperatorTerms.ts"
import { makeOutageLog } from "../outageLog.ts"

/** How long a finished run that was not released counts as live, milliseconds. */
const unreleasedMillis = 86_400_000

/** A run, and the organization that it belongs to; null if the run is gone. */
export interface ChangedRun {
  readonly id: DeploymentId
  readonly orgId: OrgId | null
}
const RunRow = Schema.Struct({ id: DeploymentId, orgId: OrgId })

const liveRuns = (sql: PgClient.PgClient) => {
  const findLive = SqlSchema.findAll({
    Request: Schema.Finite,
    Result: RunRow,
    execute: (now) => sql`
      SELECT id, org_id AS "orgId" FROM deployments WHERE ended_at IS NULL
      UNION SELECT d.id, d.org_id FROM models m JOIN deployments d ON d.org_id = m.org_id AND d.revision_id = m.active_revision_id WHERE m.deleted_at IS NULL
      UNION SELECT deployment_id, org_id FROM endpoints
      UNION SELECT id, org_id FROM deployments WHERE ended_at IS NOT NULL AND released_at IS NULL AND ended_at > ${new Date(now - unreleasedMillis)}
      ORDER BY id`
  })
  return Clock.currentTimeMillis.pipe(Effect.flatMap(findLive), Effect.orDie)
}

/** The runs that may need work, and the stream of runs that changed. */
export const runChanges = (sql: PgClient.PgClient) => {
  const live = liveRuns(sql)
  const drainOutbox = SqlSchema.findAll({
    Request: Schema.Void,
    Result: RunRow,
    execute: () => sql`WITH work AS (DELETE FROM outbox RETURNING deployment_id, org_id) SELECT DISTINCT deployment_id AS id, org_id AS "orgId" FROM work`
  })
  const findNotified = SqlSchema.findAll({
    Request: Schema.Array(DeploymentId),
    Result: RunRow,
    execute: (ids) => sql`SELECT id, org_id AS "orgId" FROM deployments WHERE ${sql.in("id", ids)}`
  })

  /** Postgres may become unavailable after a notification; the stream must not end because of it. */
  const log = makeOutageLog("Could not read the outbox; retrying")
  const tolerant = <A>(effect: Effect.Effect<A>) => Effect.sandbox(Effect.tapCause(effect, (cause) => log(cause)))
  /** Everything that was missed without a listener: the rest of the outbox, then all live runs. */
  const missed = Effect.gen(function* () {
    const left = yield* Effect.orDie(whileLeading(sql, drainOutbox()))
    return [...new Map([...left, ...(yield* live)].map((run) => [run.id, run])).values()]
  }).pipe(
    tolerant,
    Effect.retry(Schedule.spaced("1 second")),
    Effect.catch((cause) => Effect.failCause(cause))
  )
  const decodeId = Schema.decodeOption(DeploymentId)
  /** Notifications that arrive together are taken from the outbox together. */
  const takeNotified = Effect.fnUntraced(function* (payloads: ReadonlyArray<string>) {
    const notified = [...new Set(payloads.flatMap((payload) => Option.toArray(decodeId(payload))))]
    if (notified.length === 0) return []
    // Rows that are not deleted are read again later.
    yield* Effect.orDie(sql`DELETE FROM outbox WHERE ${yield* leads(sql)} AND ${sql.in("deployment_id", notified)}`).pipe(tolerant, Effect.ignore)
    const rows = yield* Effect.orDie(findNotified(notified)).pipe(
      tolerant,
      Effect.orElseSucceed(() => [])
    )
    const owners = new Map(rows.map(({ id, orgId }) => [id, orgId]))
    return notified.map((id): ChangedRun => ({ id, orgId: owners.get(id) ?? null }))
  })
  const changedRuns = Effect.fnUntraced(function* (events: ReadonlyArray<ListenEvent>) {
    const missedRuns = events.some(({ _tag }) => _tag === "Listening") ? yield* missed : []
    return [...missedRuns, ...(yield* takeNotified(events.flatMap((event) => (event._tag === "Notified" ? [event.payload] : []))))]
  })
  const changes = listen(sql, "deployments").pipe(Stream.chunks, Stream.mapEffect(changedRuns), Stream.flattenIterable)

  return { changes, live }
}
