import { PgClient } from "@effect/sql-pg"
import { Config, Context, Duration, Effect, Layer, type Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { hasRoles, roleName } from "./access/applyAccess.ts"
import { layerSchema } from "./DatabaseSchema.ts"
import { migrate } from "./migrate.ts"
import { Partitions } from "./Partitions.ts"
import { acrossOrganizations, makeTenantClient } from "./tenants.ts"

/**
 * A second, small pool for reading requests. Its statements are pipelined, many to a connection: they are short and wait for no row's lock, so none holds up those
 * behind it for long. Nothing that writes, or that locks, belongs here.
 */
export class ReadPool extends Context.Service<ReadPool, PgClient.PgClient>()("seatrial/ReadPool") {}

/** A small pool for what the server reads across organizations: keys, and published models. Row-level security shows it nothing else. */
export class AcrossPool extends Context.Service<AcrossPool, PgClient.PgClient>()("seatrial/AcrossPool") {}

export interface PoolOptions {
  readonly url: Redacted.Redacted<string>
  /** Connections. */
  readonly poolSize: number
  /** Connections of the pool for reading. */
  readonly readPoolSize: number
  readonly applicationName: string
  readonly idleTimeout?: Duration.Input
  /** After which Postgres gives a statement up; without it, never. Those of the pool for reading are given up after 5 s. */
  readonly statementTimeout?: Duration.Input
  /**
   * After which Postgres ends a transaction whose program sends nothing more. A program that was suspended in the middle of one would hold its locks for as long: the next
   * operator could not begin its term. Default 15 s.
   */
  readonly idleTransactionTimeout?: Duration.Input
  /**
   * No statement reads a whole table where an index leads to its rows. Connections keep their plans: one that was made while a table fitted on a page or two, which is read
   * faster than an index, would go on to read all of it when it is a thousand times as long.
   */
  readonly byIndex?: boolean
  /** The group role whose rights the statements have; without it they have those of the login. */
  readonly role?: string | undefined
  /**
   * Whether each statement of the main pool is restricted to the organization of the fiber that runs it (`TenantScope`). A text restricts all of them to that organization.
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
    // Pipelining many statements on one connection is faster, but one that waits for a row's lock would then hold up all that were sent behind it.
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
      // Each list has an index in its own order. One plan for all callers, and never one that reads or sorts what an organisation has: with plans made for each caller, or
      // from old statistics, a large one would now and then get that of a small one.
      plan_cache_mode: "force_generic_plan",
      enable_seqscan: "off",
      enable_bitmapscan: "off",
      enable_sort: "off",
      jit: "off"
    },
    multiplex: true,
    // Few enough that the pool opens more connections, and more than one process of Postgres is at work.
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

const withSchema = <E>(client: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | ReadPool, E>, migrates: Config.Config<boolean>) =>
  Partitions.layerSql.pipe(Layer.provideMerge(Layer.unwrap(Effect.map(migrates, layerSchema))), Layer.provideMerge(client))

const layerWith = (options: Partial<PoolOptions>) => Layer.unwrap(Effect.map(settings, (given) => connect({ ...given, ...options })))

/** With the rights of the login, whatever role the programs have. */
const layerOwner = layerWith({ role: undefined })

/** The role is made by a migration, so a program that may migrate does so before it takes the role. */
const prepared = Effect.gen(function* () {
  if ((yield* settings).role === undefined || !(yield* migratesAtStart)) return
  yield* Layer.build(layerSchema(true).pipe(Layer.provide(Layer.fresh(layerOwner))))
}).pipe(Effect.scoped)

const program = (options: Partial<PoolOptions>) => withSchema(Layer.unwrap(Effect.as(prepared, layerWith(options))), migratesAtStart)

/**
 * The connection pools. Settings: `DATABASE_URL`, `DATABASE_POOL_SIZE` (connections, default 10), `DATABASE_READ_POOL_SIZE` (pipelined connections for reading requests,
 * default 8, opened when they are first needed), `DATABASE_STATEMENT_TIMEOUT` (default 30 seconds), `DATABASE_APPLICATION_NAME`, `DATABASE_MIGRATE` (default true), `DATABASE_ROLE` (none).
 */
export const Database = {
  /** The pool alone, with the rights of the login: for migrations. */
  layerOwner,
  /** The pool alone. */
  layer: layerWith({}),
  /** Brings the database up to date and gives the migrations that were still to be made: each number and name. */
  migrate,
  /** Whether the roles of the programs exist. */
  hasRoles: Effect.flatMap(SqlClient.SqlClient, hasRoles),
  /** The pool of a database whose schema is the one that the program needs and whose partitions are made ahead. With `DATABASE_MIGRATE` it migrates, else it waits. */
  layerMigrated: program({}),
  /** The same for administration: if programs have roles, with the role of administration. */
  layerAdmin: Layer.unwrap(Effect.map(settings, ({ role }) => (role === undefined ? program({}) : program({ role: roleName("admin") })))),
  /** The same for the operator, whose statements are about one run each, however many there are. */
  layerOperator: program({ byIndex: true }),
  /** The same for the server, whose statements are restricted to the organization of the fiber that runs them, as far as its role is subject to row-level security. */
  layerServer: program({ tenants: true }),
  /** A small pool for what the server reads before it knows the organization, and of published models. */
  layerAcrossOrganizations: Layer.effect(AcrossPool, PgClient.PgClient).pipe(
    Layer.provide(Layer.fresh(layerWith({ tenants: acrossOrganizations, poolSize: 4, readPoolSize: 1 })))
  ),
  /** The same for one address, without configuration. */
  layerUrl: (url: Redacted.Redacted<string>, options: { readonly poolSize?: number; readonly applicationName?: string } = {}) =>
    withSchema(
      connect({ url, poolSize: options.poolSize ?? 10, readPoolSize: 2, applicationName: options.applicationName ?? "seatrial" }),
      Config.succeed(true)
    )
} as const
