import { PgClient, type PgConnection, PgPool } from "@effect/sql-pg"
import { Context, Effect, Schema, Stream } from "effect"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"

/**
 * The organization whose rows a fiber's statements can access on a connection with row-level security; null: none. This
 * is a second line of defense: each statement also names its organization.
 */
export const TenantScope = Context.Reference<string | null>("seatrial/TenantScope", { defaultValue: () => null })

/** The scope of statements that read across organizations; only few tables permit it. */
export const acrossOrganizations = "*"

const isTransactionControl = /^(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b/u

type Prepare = (sql: string) => Effect.Effect<void, SqlError.SqlError>

/** A connection that sets the fiber's organization before each statement, unless it is already set. */
const scopedConnection = (connection: PgConnection.PgConnection, prepare: Prepare): SqlConnection.Connection => {
  const rowsOf = (sql: string, params: ReadonlyArray<unknown>, prepared: boolean) =>
    Effect.andThen(
      prepare(sql),
      Effect.map(connection.query(sql, params, prepared), ({ rows }) => rows)
    )
  const transformed = <A>(rows: Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>, transform: ((rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined) =>
    transform === undefined ? rows : Effect.map(rows, transform)
  return {
    execute: (sql, params, transform) => transformed(rowsOf(sql, params, true), transform),
    executeUnprepared: (sql, params, transform) => transformed(rowsOf(sql, params, false), transform),
    executeRaw: (sql, params) => Effect.andThen(prepare(sql), connection.query(sql, params)),
    executeValues: (sql, params) => Effect.andThen(prepare(sql), connection.queryValues(sql, params)),
    executeValuesUnprepared: (sql, params) => Effect.andThen(prepare(sql), connection.queryValues(sql, params, false)),
    executeStream: (sql, params) => Stream.unwrap(Effect.as(prepare(sql), connection.stream(sql, params)))
  }
}

/** Sets the organization for the session and tracks it for each connection. For statements outside transactions. */
const sessionScopes = () => {
  const current = new WeakMap<PgConnection.PgConnection, string>()
  return (connection: PgConnection.PgConnection) =>
    scopedConnection(connection, () =>
      Effect.withFiber((fiber) => {
        const scope = fiber.getRef(TenantScope) ?? ""
        if (current.get(connection) === scope) return Effect.void
        current.delete(connection)
        return Effect.map(connection.query("SELECT set_config('seatrial.org_id', $1, false)", [scope]), () => void current.set(connection, scope))
      })
    )
}

/** Sets the organization for one transaction. A rollback to a savepoint may undo the setting, so it is set again. */
const transactionScope = (connection: PgConnection.PgConnection) => {
  let current: string | undefined
  return scopedConnection(connection, (sql) =>
    Effect.withFiber((fiber) => {
      if (isTransactionControl.test(sql)) {
        current = undefined
        return Effect.void
      }
      const scope = fiber.getRef(TenantScope) ?? ""
      if (current === scope) return Effect.void
      current = undefined
      return Effect.map(connection.query("SELECT set_config('seatrial.org_id', $1, true)", [scope]), () => {
        current = scope
      })
    })
  )
}

const isRolledBack = Schema.is(Schema.Struct({ command: Schema.Literal("ROLLBACK") }))

/** Postgres answers `ROLLBACK` to the `COMMIT` of a failed transaction. */
const commit = (connection: SqlConnection.Connection) =>
  Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
    isRolledBack(result)
      ? Effect.fail(
          new SqlError.SqlError({
            reason: new SqlError.UnknownError({ cause: result, message: "COMMIT rolled back a transaction that had failed", operation: "commit" })
          })
        )
      : Effect.void
  )

/**
 * A client like `PgClient.make`'s whose statements are restricted to the organization of their fiber by row-level
 * security.
 */
export const makeTenantClient = Effect.fnUntraced(function* (config: PgClient.PgPoolConfig) {
  // For functions other than statements: this pool opens no connections for them.
  const base = yield* PgClient.make(config)
  const pool = yield* PgPool.make(config)
  const scoped = sessionScopes()
  const client = yield* SqlClient.make({
    acquirer: Effect.map(pool.get, scoped),
    borrower: (use) => pool.use((connection) => use(scoped(connection))),
    transactionAcquirer: Effect.map(pool.reserve, transactionScope),
    prepareTransactionControls: true,
    commit,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    compiler: PgClient.makeCompiler(),
    driver: base.driver,
    spanAttributes: [["db.system.name", "postgresql"]]
  })
  return Object.assign(client, { [PgClient.TypeId]: PgClient.TypeId, config: base.config, json: base.json, listen: base.listen, notify: base.notify })
})
