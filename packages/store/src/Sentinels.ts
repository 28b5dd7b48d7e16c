import { PgClient } from "@effect/sql-pg"
import { type DeploymentId, Ids, type ModelId, type OrgId, type RevisionId, SuspicionId } from "@seatrial/domain"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { type SqlError, SqlSchema } from "effect/sql"
import { MillisFromDate } from "./columns.ts"
import { leads } from "./OperatorTerms.ts"
import { textArray } from "./textArray.ts"

/** One start of an engine: it changes when the container restarts. */
export interface EngineStarted {
  readonly podUid: string
  readonly restarts: number
}

const StoredSentinel = Schema.Struct({
  /** The evidence since the start, and the largest recent evidence of one text or of all. */
  total: Schema.Finite,
  recent: Schema.Finite,
  /** Number of probes since the start. */
  probes: Schema.Int,
  /**
   * The earliest last good probe of the texts with evidence, or the begin of the probes. Earlier if the engine had begun
   * requests before that probe. Unix milliseconds, as all times here.
   */
  goodAt: MillisFromDate,
  /** Number of probes up to that one. */
  goodProbes: Schema.Int,
  probedAt: MillisFromDate,
  /** When the evidence became strong enough; null before that. */
  alarmedAt: Schema.NullOr(MillisFromDate)
})
export type StoredSentinel = typeof StoredSentinel.Type

export interface SentinelRow extends EngineStarted, StoredSentinel {
  readonly orgId: OrgId
  readonly deploymentId: DeploymentId
  readonly pod: string
}

/** An engine whose answers differ from the verified ones. */
export interface NewSuspicion {
  readonly modelId: ModelId
  readonly revisionId: RevisionId
  readonly node: string | null
  readonly row: SentinelRow
}

const Alarmed = Schema.Struct({
  podUid: Schema.String,
  restarts: Schema.Int,
  pod: Schema.String,
  alarmedAt: MillisFromDate,
  since: MillisFromDate,
  probes: Schema.Int,
  lately: Schema.Int
})
/** An engine with an alarm. `probes`: after `since`. `lately`: see `raise`. */
export type AlarmedEngine = typeof Alarmed.Type

/** Rows of engines that were not probed for so long are deleted. Their pods are gone. */
const keptDays = 30

/** SQL: the suspicions of the deployment in the last day, up to the one at `at`. */
const lately = `(SELECT count(*)::int FROM suspicions l WHERE l.deployment_id = s.deployment_id AND l.created_at > s.created_at - interval '1 day' AND l.created_at <= s.created_at)`

const rowsJson = (rows: ReadonlyArray<SentinelRow>): string =>
  JSON.stringify(
    rows.map(({ alarmedAt, deploymentId, goodAt, goodProbes, orgId, pod, podUid, probedAt, probes, recent, restarts, total }) => ({
      org_id: orgId,
      deployment_id: deploymentId,
      pod_uid: podUid,
      pod,
      restarts,
      total,
      recent,
      probes,
      good_at: new Date(goodAt).toISOString(),
      good_probes: goodProbes,
      probed_at: new Date(probedAt).toISOString(),
      alarmed_at: alarmedAt === null ? null : new Date(alarmedAt).toISOString()
    }))
  )

const save = Effect.fnUntraced(function* (sql: PgClient.PgClient, rows: ReadonlyArray<SentinelRow>) {
  yield* sql`
    INSERT INTO sentinels (org_id, deployment_id, pod_uid, pod, restarts, total, recent, probes, good_at, good_probes, probed_at, alarmed_at)
    SELECT r.org_id, r.deployment_id, r.pod_uid, r.pod, r.restarts, r.total, r.recent, r.probes, r.good_at, r.good_probes, r.probed_at, r.alarmed_at
    FROM json_to_recordset(${rowsJson(rows)}::json) AS r (org_id text, deployment_id text, pod_uid text, pod text, restarts int, total float8, recent float8,
      probes int, good_at timestamptz, good_probes int, probed_at timestamptz, alarmed_at timestamptz)
    JOIN deployments d ON d.id = r.deployment_id AND d.org_id = r.org_id
    WHERE ${yield* leads(sql)}
    ORDER BY r.pod_uid
    ON CONFLICT (pod_uid) DO UPDATE SET restarts = excluded.restarts, total = excluded.total, recent = excluded.recent, probes = excluded.probes,
      good_at = excluded.good_at, good_probes = excluded.good_probes, probed_at = excluded.probed_at, alarmed_at = excluded.alarmed_at`
})

const statements = (sql: PgClient.PgClient) => ({
  read: SqlSchema.findOneOption({
    Request: Schema.Struct({ podUid: Schema.String, restarts: Schema.Int }),
    Result: StoredSentinel,
    execute: ({ podUid, restarts }) => sql`
      SELECT total, recent, probes, good_at AS "goodAt", good_probes AS "goodProbes", probed_at AS "probedAt", alarmed_at AS "alarmedAt"
      FROM sentinels WHERE pod_uid = ${podUid} AND restarts = ${restarts}`
  }),
  alarmed: SqlSchema.findAll({
    Request: Schema.Void,
    Result: Alarmed,
    execute: () => sql`
      SELECT s.pod_uid AS "podUid", s.restarts, s.pod, s.created_at AS "alarmedAt", s.since, s.probes, ${sql.literal(lately)} AS lately
      FROM sentinels n JOIN suspicions s ON s.pod_uid = n.pod_uid AND s.restarts = n.restarts WHERE n.alarmed_at IS NOT NULL`
  }),
  lately: SqlSchema.findOne({
    Request: Schema.Struct({ podUid: Schema.String, restarts: Schema.Int }),
    Result: Schema.Struct({ lately: Schema.Int }),
    execute: ({ podUid, restarts }) => sql`
      SELECT ${sql.literal(lately)} AS lately FROM suspicions s WHERE s.pod_uid = ${podUid} AND s.restarts = ${restarts}`
  })
})

/**
 * Writes the alarm and its suspicion together. A repetition changes nothing. The engine may lose its requests at the same
 * time: one of both transactions waits for the other, and the later one records the withdrawal. `publishEndpoints` takes
 * the locks in the same order.
 */
const raise = (sql: PgClient.PgClient, { modelId, node, revisionId, row }: NewSuspicion, id: SuspicionId, at: number) =>
  Effect.gen(function* () {
    yield* sql`SELECT FROM deployments WHERE id = ${row.deploymentId} FOR KEY SHARE`
    const published = yield* sql`SELECT FROM endpoints WHERE revision_id = ${revisionId} AND pod = ${row.pod} FOR SHARE`
    yield* save(sql, [row])
    yield* sql`
      INSERT INTO suspicions (org_id, created_at, id, deployment_id, model_id, revision_id, pod, pod_uid, restarts, node, since, probes, evidence, engines,
        withdrawn_at)
      SELECT ${row.orgId}, ${new Date(at)}, ${id}, ${row.deploymentId}, ${modelId}, ${revisionId}, ${row.pod}, ${row.podUid}, ${row.restarts}, ${node}::text,
        ${new Date(row.goodAt)}, ${row.probes - row.goodProbes}, ${row.total},
        greatest(1, (SELECT count(*) FROM endpoints e WHERE e.revision_id = ${revisionId})), ${published.length > 0 ? null : new Date(at)}::timestamptz
      WHERE ${yield* leads(sql)}
      ON CONFLICT DO NOTHING`
  }).pipe(sql.withTransaction)

/** What the probes of serving engines have shown, and the engines whose answers differ from the verified ones. */
export class Sentinels extends Context.Service<
  Sentinels,
  {
    /** What the probes of that start of an engine have shown; none if it is new. */
    readonly read: (start: EngineStarted) => Effect.Effect<Option.Option<StoredSentinel>>
    /** Writes the states of engines, and deletes the states of deleted pods by their uids. */
    readonly save: (rows: ReadonlyArray<SentinelRow>, gone: ReadonlyArray<string>) => Effect.Effect<void, SqlError.SqlError>
    /** Records an alarm. Returns the number of alarms of the deployment in the last day, with this one. */
    readonly raise: (suspicion: NewSuspicion) => Effect.Effect<number, SqlError.SqlError>
    /** The engines with an alarm whose pods may still exist. Deletes rows of pods that are long gone. */
    readonly alarmed: Effect.Effect<ReadonlyArray<AlarmedEngine>>
  }
>()("seatrial/Sentinels") {
  static readonly layerSql = Layer.effect(
    Sentinels,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const ids = yield* Ids
      const { alarmed, lately: countLately, read } = statements(sql)
      const removeOld = Effect.gen(function* () {
        yield* sql`DELETE FROM sentinels WHERE probed_at < now() - ${keptDays} * interval '1 day' AND ${yield* leads(sql)}`
      })
      return Sentinels.of({
        read: Effect.fn("Sentinels.read")((start) => Effect.orDie(read(start))),
        save: Effect.fn("Sentinels.save")(function* (rows, gone) {
          if (gone.length > 0) yield* sql`DELETE FROM sentinels WHERE pod_uid = ANY(${textArray(gone)}) AND ${yield* leads(sql)}`
          if (rows.length > 0) yield* save(sql, rows)
        }),
        raise: Effect.fn("Sentinels.raise")(function* (suspicion) {
          const at = yield* Clock.currentTimeMillis
          yield* raise(sql, suspicion, yield* ids.make(SuspicionId, at), at)
          const counted = yield* Effect.option(countLately(suspicion.row))
          return Option.match(counted, { onNone: () => 1, onSome: (row) => row.lately })
        }),
        alarmed: Effect.orDie(Effect.andThen(removeOld, alarmed())).pipe(Effect.withSpan("Sentinels.alarmed"))
      })
    })
  )
}
