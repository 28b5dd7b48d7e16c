import { PgClient } from "@effect/sql-pg"
import { DeploymentId, type OrgId } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { type SqlError, SqlSchema } from "effect/sql"
import { MillisFromDate } from "./columns.ts"
import { OperatorTerm } from "./OperatorTerms.ts"

/** A decision of the operator to record. */
export interface NewDecision {
  readonly orgId: OrgId
  readonly deploymentId: DeploymentId
  /** Increases with each series. The first row of a series has the whole observation. */
  readonly series: number
  /** The place in the series, from 0. */
  readonly seq: number
  /** Unix milliseconds. */
  readonly decidedAt: number
  readonly rule: string
  /** JSON: the whole observation, or its changes since the row before it in the series. */
  readonly observation: string
  /** JSON. */
  readonly decision: string
}

const DecisionKey = Schema.Struct({ deploymentId: DeploymentId, term: Schema.Int, series: Schema.Finite, seq: Schema.Int })
/** The place of a row in the order of reading: by run, and then in the order in which the decisions were made. */
type DecisionKey = typeof DecisionKey.Type

const StoredDecision = Schema.Struct({
  ...DecisionKey.fields,
  /** When it was recorded, by the clock of the database, Unix milliseconds. */
  at: MillisFromDate,
  /** When it was made, by the clock of the operator, Unix milliseconds. */
  decidedAt: MillisFromDate,
  build: Schema.String,
  rule: Schema.String,
  /** The whole observation if `seq` is 0, otherwise the changes since the row before it in the series. */
  observation: Schema.Unknown,
  decision: Schema.Unknown
})
export type StoredDecision = typeof StoredDecision.Type

/** Rows of one statement. */
const pageSize = 200
/** Rows that one statement deletes. */
const deletedAtOnce = 1_000

/** One page of rows after a key, of one run or of all. */
const makePage = (sql: PgClient.PgClient) => {
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ deploymentId: Schema.NullOr(DeploymentId), after: Schema.Option(DecisionKey) }),
    Result: StoredDecision,
    execute: ({ after, deploymentId }) => sql`
      SELECT deployment_id AS "deploymentId", term, series::float8 AS series, seq, at, decided_at AS "decidedAt", build, rule, observation, decision
      FROM decisions
      WHERE ${sql.and([
        ...(deploymentId === null ? [] : [sql`deployment_id = ${deploymentId}`]),
        ...Option.toArray(after).map((key) => sql`(deployment_id, term, series, seq) > (${key.deploymentId}, ${key.term}, ${key.series}, ${key.seq})`),
        sql`true`
      ])}
      ORDER BY deployment_id, term, series, seq LIMIT ${pageSize}`
  })
  return (deploymentId: DeploymentId | null, after: Option.Option<DecisionKey>) => Effect.orDie(find({ deploymentId, after }))
}

/** The rows as one JSON text. Observations and decisions are JSON already. */
const jsonOf = (rows: ReadonlyArray<NewDecision>): string =>
  `[${rows
    .map(({ decidedAt, decision, deploymentId, observation, orgId, rule, seq, series }) => {
      const columns = JSON.stringify({ org_id: orgId, deployment_id: deploymentId, series, seq, decided_at: new Date(decidedAt).toISOString(), rule })
      return `${columns.slice(0, -1)},"observation":${observation},"decision":${decision}}`
    })
    .join(",")}]`

const insert = (sql: PgClient.PgClient, term: number, build: string, rows: ReadonlyArray<NewDecision>) =>
  // A statement that is repeated after a lost connection inserts nothing twice.
  sql`
    INSERT INTO decisions (org_id, deployment_id, term, series, seq, begun_at, at, decided_at, build, rule, observation, decision)
    SELECT r.org_id, r.deployment_id, ${term}, r.series, r.seq, coalesce(b.begun_at, now()), now(), r.decided_at, ${build}, r.rule, r.observation, r.decision
    FROM json_to_recordset(${jsonOf(rows)}::json) AS r (org_id text, deployment_id text, series bigint, seq int, decided_at timestamptz, rule text,
      observation jsonb, decision jsonb)
    JOIN deployments d ON d.id = r.deployment_id AND d.org_id = r.org_id
    LEFT JOIN decisions b ON b.deployment_id = r.deployment_id AND b.term = ${term} AND b.series = r.series AND b.seq = 0
    ON CONFLICT DO NOTHING`

const removeOlder = (sql: PgClient.PgClient, days: number): Effect.Effect<number, SqlError.SqlError> =>
  Effect.gen(function* () {
    let removed = 0
    while (true) {
      const rows = yield* sql`
        WITH old AS (SELECT deployment_id, term, series, seq FROM decisions WHERE begun_at < now() - ${days} * interval '1 day' ORDER BY begun_at LIMIT ${deletedAtOnce})
        DELETE FROM decisions d USING old
        WHERE (d.deployment_id, d.term, d.series, d.seq) = (old.deployment_id, old.term, old.series, old.seq) RETURNING d.seq`
      removed += rows.length
      if (rows.length < deletedAtOnce) return removed
    }
  })

/** Why the operator acted: what it observed and decided. */
export class Decisions extends Context.Service<
  Decisions,
  {
    /**
     * Records decisions of the fiber's term, in the order of their series. Runs that Postgres does not contain are left
     * out.
     */
    readonly record: (build: string, rows: ReadonlyArray<NewDecision>) => Effect.Effect<void, SqlError.SqlError>
    /**
     * Deletes the series that began so many days ago or earlier, by the clock of the database. Returns the number of
     * rows.
     */
    readonly removeOlder: (days: number) => Effect.Effect<number, SqlError.SqlError>
    /**
     * The decisions about one run, or about all, in pages and in the order of `DecisionKey`. None in a database of an
     * earlier version.
     */
    readonly read: (deploymentId: DeploymentId | null) => Stream.Stream<StoredDecision>
  }
>()("seatrial/Decisions") {
  static readonly layerSql = Layer.effect(
    Decisions,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const page = makePage(sql)
      const exists = Effect.orDie(Effect.map(sql`SELECT FROM pg_class WHERE oid = to_regclass('decisions')`, (rows) => rows.length > 0))
      return Decisions.of({
        record: Effect.fn("Decisions.record")(function* (build, rows) {
          if (rows.length > 0) yield* insert(sql, (yield* OperatorTerm) ?? 0, build, rows)
        }),
        removeOlder: Effect.fn("Decisions.removeOlder")((days) => removeOlder(sql, days)),
        read: (deploymentId) =>
          Stream.unwrap(
            Effect.map(exists, (isPresent) =>
              isPresent
                ? Stream.paginate(Option.none<DecisionKey>(), (after) =>
                    Effect.map(page(deploymentId, after), (rows) => {
                      const last = rows.at(-1)
                      return [rows, last === undefined || rows.length < pageSize ? Option.none() : Option.some(Option.some(last))] as const
                    })
                  )
                : Stream.empty
            )
          )
      })
    })
  )
}
