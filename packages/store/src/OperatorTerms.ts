import { PgClient } from "@effect/sql-pg"
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { type SqlError, SqlSchema } from "effect/sql"

/**
 * The term of the operator that a fiber works for; null if the fiber does not belong to an operator, and then terms are
 * not checked.
 */
export const OperatorTerm = Context.Reference<number | null>("seatrial/OperatorTerm", { defaultValue: () => null })

/**
 * A SQL condition for writes: the fiber's term is the newest, and stays the newest until the transaction ends. An
 * operator that was suspended and has lost the lead therefore cannot write.
 */
export const leads = (sql: PgClient.PgClient) =>
  Effect.map(OperatorTerm, (term) => (term === null ? sql`true` : sql`EXISTS (SELECT FROM operator_terms WHERE term = ${term} FOR SHARE)`))

/**
 * Whether the leading operator itself writes. It then continues without an outbox row, and its successor reads all live
 * runs anyway.
 */
export const isOwnWrite: Effect.Effect<boolean> = Effect.map(OperatorTerm, (term) => term !== null)

/** Runs the effect in a transaction in which the fiber's term is the newest. Dies if it is not. */
export const whileLeading = <A, E, R>(sql: PgClient.PgClient, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
  Effect.gen(function* () {
    if ((yield* OperatorTerm) === null) return yield* effect
    const rows = yield* sql`SELECT 1 WHERE ${yield* leads(sql)}`
    return rows.length > 0 ? yield* effect : yield* Effect.die(new Error("Another operator leads."))
  }).pipe(sql.withTransaction)

/** Decides which of several operators may write to Postgres. */
export class OperatorTerms extends Context.Service<
  OperatorTerms,
  {
    /** Begins a term: writes of all earlier terms are rejected from now on, and their open transactions have ended. */
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
