import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { type SqlError, SqlSchema } from "effect/sql"

/** The term of the operator that a fibre works for; null where it works for none, and nothing is asked. */
export const OperatorTerm = Context.Reference<number | null>("seatrial/OperatorTerm", { defaultValue: () => null })

/**
 * A condition of a statement that writes: that the fibre's term is the newest one, and stays so until the transaction ends. An operator that was stopped for a while and
 * does not know yet that another leads changes nothing any more.
 */
export const leads = (sql: PgClient.PgClient) =>
  Effect.map(OperatorTerm, (term) => (term === null ? sql`true` : sql`EXISTS (SELECT FROM operator_terms WHERE term = ${term} FOR SHARE)`))

/**
 * Whether the operator that leads writes this itself: it goes on by itself then, and whoever comes after it looks at everything that is live, so it leaves itself no word.
 */
export const isOwnWrite: Effect.Effect<boolean> = Effect.map(OperatorTerm, (term) => term !== null)

/** The effect in one transaction in which the fibre's term is the newest; without it a defect, for nothing can be answered. */
export const whileLeading = <A, E, R>(sql: PgClient.PgClient, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.gen(function* () {
    if ((yield* OperatorTerm) === null) return yield* effect
    const rows = yield* sql`SELECT 1 WHERE ${yield* leads(sql)}`
    return rows.length > 0 ? yield* effect : yield* Effect.die(new Error("another operator leads by now"))
  }).pipe(sql.withTransaction)

/** Who of several operators writes to Postgres. */
export class OperatorTerms extends Context.Service<
  OperatorTerms,
  {
    /** Begins a term: from now on the writes of all earlier ones are refused, and those under way have ended. */
    readonly begin: Effect.Effect<number>
    /** The newest term; none before the first. */
    readonly current: Effect.Effect<Option.Option<number>>
  }
>()("seatrial/OperatorTerms") {
  static readonly layerSql = Layer.effect(
    OperatorTerms,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const Row = Schema.Struct({ term: Schema.Int })
      const begin = SqlSchema.findOne({
        Request: Schema.Date,
        Result: Row,
        execute: (at) => sql`
          INSERT INTO operator_terms (term, begun_at) VALUES (1, ${at})
          ON CONFLICT (singleton) DO UPDATE SET term = operator_terms.term + 1, begun_at = excluded.begun_at RETURNING term`
      })
      const current = SqlSchema.findOneOption({ Request: Schema.Void, Result: Row, execute: () => sql`SELECT term FROM operator_terms` })
      return OperatorTerms.of({
        begin: Clock.currentTimeMillis.pipe(
          Effect.flatMap((now) => begin(new Date(now))),
          Effect.map(({ term }) => term),
          Effect.orDie,
          Effect.withSpan("OperatorTerms.begin")
        ),
        current: current().pipe(Effect.map(Option.map(({ term }) => term)), Effect.orDie, Effect.withSpan("OperatorTerms.current"))
      })
    })
  )
}
