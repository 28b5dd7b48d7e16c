import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Ids, type KeyId, type OrgId, scopes, type UserId } from "@seatrial/domain"
import { EmbeddedPostgres } from "@seatrial/local"
import { ApiKeys, Database, Organizations, ReadPool, Requests } from "@seatrial/store"
import { Config, Context, Effect, Layer, Redacted, Scope } from "effect"
import { makeRequests } from "./makeRequests.ts"

/** A separate migrated database for the benchmark, with a caller. */
export interface Lab {
  readonly databaseUrl: string
  readonly sql: PgClient.PgClient
  /** The pool that reads requests. */
  readonly reads: PgClient.PgClient
  readonly listJson: Requests["Service"]["listJson"]
  readonly orgId: OrgId
  readonly orgSlug: string
  readonly userId: UserId
  readonly keyId: KeyId
  /** All scopes. */
  readonly key: string
  /** The organization with the fewest requests, and its key. */
  readonly small: { readonly orgId: OrgId; readonly key: string }
}

/** A lab with many requests. */
export interface RequestLab {
  readonly lab: Lab
  readonly rows: number
  readonly organizations: number
  /** Times of the oldest and newest request, Unix milliseconds. */
  readonly from: number
  readonly until: number
  /** Seconds that creating them took. */
  readonly seconds: number
}

/** The databases of the benchmarks. All are on one server. */
export interface Labs {
  readonly postgresVersion: string
  /** A new database, which is dropped when the scope closes. No run, model or default of one benchmark changes another. */
  readonly own: Effect.Effect<Lab, unknown, Scope.Scope>
  /** The database that all benchmarks of requests share, because it takes minutes to fill. It is created on first use. */
  readonly requests: Effect.Effect<RequestLab, unknown>
}

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const path = await mkdtemp(join(tmpdir(), "seatrial-bench-"))
    // The account that Postgres runs as must be able to reach it.
    await chmod(path, 0o755)
    return path
  }),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** The embedded Postgres with production durability. Its data is removed at the end. */
const embedded = Effect.gen(function* () {
  const directory = yield* temporaryFolder
  return Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory })), EmbeddedPostgres).url("postgres")
})

/** Runs a statement on the server at that address. */
const administer = <A>(address: Redacted.Redacted<string>, statement: (sql: PgClient.PgClient) => Effect.Effect<A, unknown>) =>
  Effect.flatMap(PgClient.PgClient, statement).pipe(Effect.provide(PgClient.layer({ url: address, maxConnections: 1 })), Effect.orDie)

/** A new database on that server, dropped at the end. Other databases are not touched. */
const newDatabase = Effect.fnUntraced(function* (address: Redacted.Redacted<string>) {
  const name = `seatrial_bench_${crypto.randomUUID().replaceAll("-", "")}`
  yield* Effect.acquireRelease(
    administer(address, (sql) => sql`CREATE DATABASE ${sql(name)}`),
    () => administer(address, (sql) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`)
  )
  const url = new URL(Redacted.value(address))
  url.pathname = `/${name}`
  return Redacted.make(url.toString())
})

const organizations = 100
const days = 60
const hourMillis = 3_600_000

const openLab = Effect.fnUntraced(function* (address: Redacted.Redacted<string>): Effect.fn.Return<Lab, unknown, Scope.Scope> {
  const url = yield* newDatabase(address)
  const services = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Requests.layerSql).pipe(
    Layer.provideMerge([Database.layerUrl(url, { applicationName: "seatrial-bench" }), Ids.layer])
  )
  const context: Context.Context<Organizations | ApiKeys | Requests | ReadPool | PgClient.PgClient> = yield* Layer.build(services)
  const sql = Context.get(context, PgClient.PgClient)
  const organizations = Context.get(context, Organizations)

  const makeOrganization = Effect.fnUntraced(function* (slug: string) {
    const { id: orgId } = yield* organizations.create({ slug, name: slug })
    const { id: userId } = yield* organizations.addUser({ orgId, email: `${slug}@example.com`, name: slug, role: "owner" })
    yield* organizations.recordPurchase({ orgId, micros: 1n })
    const { key, secret } = yield* Context.get(context, ApiKeys).create({ orgId, userId, name: slug, scopes })
    return { orgId, orgSlug: slug, userId, keyId: key.id, key: Redacted.value(secret) }
  })
  const big = yield* makeOrganization("bench")
  const small = yield* makeOrganization("small")
  return {
    databaseUrl: Redacted.value(url),
    sql,
    reads: Context.get(context, ReadPool),
    listJson: Context.get(context, Requests).listJson,
    ...big,
    small
  }
})

const makeRequestLab = Effect.fnUntraced(function* (address: Redacted.Redacted<string>): Effect.fn.Return<RequestLab, unknown, Scope.Scope> {
  const lab = yield* openLab(address)
  const rows = yield* Config.Int("BENCH_REQUESTS").pipe(Config.withDefault(10_000_000))
  const begun = performance.now()
  const until = Math.floor(Date.now() / hourMillis) * hourMillis
  yield* makeRequests(lab.sql, { orgId: lab.orgId, smallOrgId: lab.small.orgId, rows, organizations, until, days, seed: 1 })
  const seconds = (performance.now() - begun) / 1_000
  // So that no dirty pages are written during a measurement.
  yield* lab.sql`CHECKPOINT`
  return { lab, rows, organizations, from: until - days * 24 * hourMillis, until, seconds }
})

/** Databases on the server at that address, until the scope closes. */
export const makeLabs = Effect.fnUntraced(function* (address: Redacted.Redacted<string>): Effect.fn.Return<Labs, never, Scope.Scope> {
  const [version] = yield* administer(address, (sql) => sql<{ readonly server_version: string }>`SHOW server_version`)
  const requests = yield* Effect.cached(Scope.provide(makeRequestLab(address), yield* Effect.scope))
  return { postgresVersion: version?.server_version ?? "unknown", own: openLab(address), requests }
})

/** Databases on the embedded Postgres or on the server of `DATABASE_URL`, until the scope closes. */
export const openLabs = Effect.gen(function* () {
  const address = yield* Config.Redacted("DATABASE_URL").pipe(Config.withDefault(null))
  return yield* makeLabs(address ?? (yield* embedded))
})
