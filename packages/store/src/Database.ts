import { PgClient } from "@effect/sql-pg"
import { Config, Context, Duration, Effect, Layer, type Redacted, Schedule } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { missingRoles, roleName } from "./access/applyAccess.ts"
import { buildIndexes, completeIndexes, lacksIndexes } from "./buildIndexes.ts"
import { layerSchema } from "./DatabaseSchema.ts"
import { migrateSchema } from "./migrate.ts"
import { Partitions } from "./Partitions.ts"
import { acrossOrganizations, makeTenantClient } from "./tenants.ts"

/**
 * A second, small pool for reading requests. It pipelines many statements on each connection: they are short and never
 * wait for row locks, so none delays the statements behind it for long. Do not use it for statements that write or
 * lock.
 */
export class ReadPool extends Context.Service<ReadPool, PgClient.PgClient>()("seatrial/ReadPool") {}

/**
 * A small pool for data that the server reads across organizations: keys and published models. Row-level security hides
 * everything else.
 */
export class AcrossPool extends Context.Service<AcrossPool, PgClient.PgClient>()("seatrial/AcrossPool") {}

export interface PoolOptions {
  readonly url: Redacted.Redacted<string>
  /** Number of connections. */
  readonly poolSize: number
  /** Number of connections in the read pool. */
  readonly readPoolSize: number
  readonly applicationName: string
  readonly idleTimeout?: Duration.Input
  /** Statement timeout; no timeout if absent. Statements of the read pool time out after 5 s. */
  readonly statementTimeout?: Duration.Input
  /**
   * How long a transaction may be idle before Postgres ends it. A suspended program holds its locks for this long, and
   * the next operator cannot begin its term until then. Default 15 s.
   */
  readonly idleTransactionTimeout?: Duration.Input
  /**
   * Disables sequential scans if an index can be used. Connections keep their plans: a plan that was made while a table
   * fitted on a page or two would scan the whole table after it has grown a thousandfold.
   */
  readonly byIndex?: boolean
  /** The group role whose privileges the statements have; if absent, the privileges of the login. */
  readonly role?: string | undefined
  /**
   * Whether each statement of the main pool is restricted to the organization of its fiber (`TenantScope`). A string
   * restricts all statements to that organization.
   */
  readonly tenants?: boolean | string
}

const millis = (timeout: Duration.Input) => String(Duration.toMillis(Duration.fromInputUnsafe(timeout)))

/** The pools, without migrations. */
export const connect = ({
  applicationName,
  byIndex = false,
  idleTimeout = "1 minute",
  idleTransactionTimeout = "15 seconds",
  poolSize,
  readPoolSize,
  role,
  statementTimeout,
  tenants = false,
  url
}: PoolOptions) => {
  const shared = { url, keepAlive: "5 seconds", idleTimeout } as const
  const asRole: Record<string, string> = role === undefined ? {} : { role }
  const mainConfig: PgClient.PgPoolConfig = {
    ...shared,
    maxConnections: poolSize,
    applicationName,
    startupParameters: {
      timezone: "UTC",
      ...asRole,
      ...(typeof tenants === "string" ? { "seatrial.org_id": tenants } : {}),
      idle_in_transaction_session_timeout: millis(idleTransactionTimeout),
      ...(byIndex ? { enable_seqscan: "off" } : {}),
      ...(statementTimeout === undefined ? {} : { statement_timeout: millis(statementTimeout) })
    },
    // Pipelining on one connection is faster, but a statement that waits for a row lock would delay all statements
    // behind it.
    multiplex: false
  }
  const main = tenants === true ? PgClient.layerFrom(makeTenantClient(mainConfig)) : PgClient.layer(mainConfig)
  const reads = PgClient.layer({
    ...shared,
    maxConnections: readPoolSize,
    applicationName: `${applicationName}-reads`,
    startupParameters: {
      timezone: "UTC",
      ...asRole,
      statement_timeout: "5000",
      // Each list has an index in its own order, so one generic plan fits all callers. With custom plans or old
      // statistics, a large organization would sometimes get a plan that scans or sorts all of its rows.
      plan_cache_mode: "force_generic_plan",
      enable_seqscan: "off",
      enable_bitmapscan: "off",
      enable_sort: "off",
      jit: "off"
    },
    multiplex: true,
    // Low enough for the pool to open more connections, so that several Postgres processes share the work.
    multiplexConcurrency: 4
  })
  return Layer.merge(main, Layer.effect(ReadPool, PgClient.PgClient).pipe(Layer.provide(Layer.fresh(reads))))
}

const settings = Config.all({
  url: Config.Redacted("DATABASE_URL"),
  poolSize: Config.Int("DATABASE_POOL_SIZE").pipe(Config.withDefault(10)),
  readPoolSize: Config.Int("DATABASE_READ_POOL_SIZE").pipe(Config.withDefault(8)),
  statementTimeout: Config.Duration("DATABASE_STATEMENT_TIMEOUT").pipe(Config.withDefault("30 seconds")),
  applicationName: Config.String("DATABASE_APPLICATION_NAME").pipe(Config.withDefault("seatrial")),
  role: Config.NonEmptyString("DATABASE_ROLE").pipe(Config.withDefault(undefined))
})

/** Whether a program may migrate the database itself. */
const migratesAtStart = Config.Boolean("DATABASE_MIGRATE").pipe(Config.withDefault(true))

type Pools<E> = Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | ReadPool, E>

/** Builds missing indexes while the program serves, if it migrates. `owner` has the privileges of the tables' owner. */
const layerIndexes = <E>(owner: Pools<E>, migrates: boolean) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      if (!migrates || !(yield* lacksIndexes(yield* SqlClient.SqlClient))) return
      yield* buildIndexes.pipe(
        Effect.provide(Layer.fresh(owner)),
        Effect.catchCause((cause) => Effect.logWarning("Could not build the indexes of partitions; the next start or `seatrial migrate` repeats it", cause)),
        Effect.forkScoped
      )
    })
  )

const withSchema = <E, O>(client: Pools<E>, owner: Pools<O>, migrates: Config.Config<boolean>) =>
  Layer.unwrap(Effect.map(migrates, (may) => Layer.merge(Partitions.layerSql, layerIndexes(owner, may)).pipe(Layer.provideMerge(layerSchema(may))))).pipe(
    Layer.provideMerge(client)
  )

const layerWith = (options: Partial<PoolOptions>) => Layer.unwrap(Effect.map(settings, (configured) => connect({ ...configured, ...options })))

/** Uses the privileges of the login even if the programs have roles. */
const layerOwner = layerWith({ role: undefined })

/** Waits for at most `DATABASE_WAIT` until Postgres answers. The log says once why it waits. */
const waitForPostgres = Effect.gen(function* () {
  const wait = yield* Config.Duration("DATABASE_WAIT").pipe(Config.withDefault(Duration.zero))
  if (Duration.isZero(wait)) return
  const report = yield* Effect.cached(Effect.logWarning("Postgres does not answer yet. The program starts when it does."))
  yield* Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql`SELECT 1`
  }).pipe(
    Effect.provide(Layer.fresh(layerOwner)),
    Effect.tapError(() => report),
    Effect.retry({
      while: (error) => SqlError.isSqlError(error) && error.isRetryable,
      schedule: Schedule.spaced("1 second").pipe(Schedule.upTo({ duration: wait }))
    })
  )
})

/** A migration creates the role, so a program that may migrate does so before it sets the role. */
const prepared = Effect.gen(function* () {
  if ((yield* settings).role === undefined || !(yield* migratesAtStart)) return
  yield* Layer.build(layerSchema(true).pipe(Layer.provide(Layer.fresh(layerOwner))))
}).pipe(Effect.scoped)

const program = (options: Partial<PoolOptions>) =>
  withSchema(Layer.unwrap(Effect.as(Effect.andThen(waitForPostgres, prepared), layerWith(options))), layerOwner, migratesAtStart)

/**
 * The connection pools. Settings: `DATABASE_URL`, `DATABASE_POOL_SIZE` (connections, default 10),
 * `DATABASE_READ_POOL_SIZE` (pipelined connections for reading requests, default 8, opened when they are first needed),
 * `DATABASE_STATEMENT_TIMEOUT` (default 30 seconds), `DATABASE_APPLICATION_NAME`, `DATABASE_MIGRATE` (default true),
 * `DATABASE_WAIT` (none), `DATABASE_ROLE` (none).
 */
export const Database = {
  /** The pool alone, with the privileges of the login: for migrations. */
  layerOwner,
  /** The pool alone. */
  layer: layerWith({}),
  /** Applies the pending migrations, and returns the number and name of each. */
  migrate: migrateSchema,
  /** Builds the indexes that migrations left to it. */
  completeIndexes,
  /** The names of the roles of programs that do not exist. */
  missingRoles: Effect.flatMap(SqlClient.SqlClient, missingRoles),
  /**
   * The pool of a database with the required schema and with partitions created ahead. The program migrates if
   * `DATABASE_MIGRATE` is set, and waits for the schema if not.
   */
  layerMigrated: program({}),
  /** The same for administration, with the administration role if programs have roles. */
  layerAdmin: Layer.unwrap(Effect.map(settings, ({ role }) => (role === undefined ? program({}) : program({ role: roleName("admin") })))),
  /**
   * The pool alone, with the administration role if programs have roles. It migrates nothing, so a newer version may
   * read an older database.
   */
  layerReader: Layer.unwrap(Effect.map(settings, ({ role }) => layerWith(role === undefined ? {} : { role: roleName("admin") }))),
  /** `layerMigrated` for the operator. Each of its statements concerns one run, however many runs exist. */
  layerOperator: program({ byIndex: true }),
  /**
   * The same for the server. If its role is subject to row-level security, each statement is restricted to the
   * organization of its fiber.
   */
  layerServer: program({ tenants: true }),
  /** A small pool for published models and for reads before the organization of a request is determined. */
  layerAcrossOrganizations: Layer.effect(AcrossPool, PgClient.PgClient).pipe(
    Layer.provide(Layer.fresh(layerWith({ tenants: acrossOrganizations, poolSize: 4, readPoolSize: 1 })))
  ),
  /** The same for one URL, without configuration. */
  layerUrl: (url: Redacted.Redacted<string>, options: { readonly poolSize?: number; readonly applicationName?: string } = {}) => {
    const pools = connect({ url, poolSize: options.poolSize ?? 10, readPoolSize: 2, applicationName: options.applicationName ?? "seatrial" })
    return withSchema(pools, pools, Config.succeed(true))
  }
} as const
