import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Ids, type KeyId, type OrgId, scopes, type UserId } from "@seatrial/domain"
import { EmbeddedPostgres } from "@seatrial/local"
import { ApiKeys, Database, Organizations } from "@seatrial/store"
import { Config, Context, Effect, Layer, Redacted, type Scope } from "effect"

/** A migrated database of the benchmark's own, and a caller in it. */
export interface Lab {
  readonly databaseUrl: string
  readonly postgresVersion: string
  readonly sql: PgClient.PgClient
  readonly orgId: OrgId
  readonly orgSlug: string
  readonly userId: UserId
  readonly keyId: KeyId
  /** All scopes. */
  readonly key: string
}

const temporaryFolder = Effect.acquireRelease(
  Effect.promise(async () => {
    const path = await mkdtemp(join(tmpdir(), "seatrial-bench-"))
    // The account that Postgres runs as has to reach it.
    await chmod(path, 0o755)
    return path
  }),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
)

/** The embedded Postgres, synced to disk as in earnest; its data go at the end. */
const embedded = Effect.gen(function* () {
  const directory = yield* temporaryFolder
  const postgres = Context.get(yield* Layer.build(EmbeddedPostgres.layer({ directory })), EmbeddedPostgres)
  yield* postgres.createDatabase("bench")
  return postgres.url("bench")
})

/** A database of our own on the server of `DATABASE_URL`, dropped at the end: what else is there stays untouched. */
const onServer = Effect.fnUntraced(function* (address: Redacted.Redacted<string>) {
  const name = `seatrial_bench_${crypto.randomUUID().replaceAll("-", "")}`
  const administer = (statement: (sql: PgClient.PgClient) => Effect.Effect<unknown, unknown>) =>
    Effect.flatMap(PgClient.PgClient, statement).pipe(Effect.provide(PgClient.layer({ url: address, maxConnections: 1 })), Effect.orDie)
  yield* Effect.acquireRelease(
    administer((sql) => sql`CREATE DATABASE ${sql(name)}`),
    () => administer((sql) => sql`DROP DATABASE IF EXISTS ${sql(name)} WITH (FORCE)`)
  )
  const url = new URL(Redacted.value(address))
  url.pathname = `/${name}`
  return Redacted.make(url.toString())
})

/** Opens the lab on the embedded Postgres, or on the server of `DATABASE_URL`; it is gone when the scope closes. */
export const openLab = Effect.gen(function* () {
  const address = yield* Config.Redacted("DATABASE_URL").pipe(Config.withDefault(null))
  const url = address === null ? yield* embedded : yield* onServer(address)
  const services = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql).pipe(
    Layer.provideMerge([Database.layerUrl(url, { applicationName: "seatrial-bench" }), Ids.layer])
  )
  const context: Context.Context<Organizations | ApiKeys | PgClient.PgClient> = yield* Layer.build(services)
  const sql = Context.get(context, PgClient.PgClient)
  const organizations = Context.get(context, Organizations)

  const { id: orgId, slug: orgSlug } = yield* organizations.create({ slug: "bench", name: "Bench" })
  const { id: userId } = yield* organizations.addUser({ orgId, email: "bench@example.com", name: "Bench", role: "owner" })
  yield* organizations.recordPurchase({ orgId, micros: 1n })
  const { key, secret } = yield* Context.get(context, ApiKeys).create({ orgId, userId, name: "bench", scopes })
  const version = yield* sql<{ readonly server_version: string }>`SHOW server_version`
  const lab: Lab = {
    databaseUrl: Redacted.value(url),
    postgresVersion: version[0]?.server_version ?? "unknown",
    sql,
    orgId,
    orgSlug,
    userId,
    keyId: key.id,
    key: Redacted.value(secret)
  }
  return lab
}) satisfies Effect.Effect<Lab, unknown, Scope.Scope>
