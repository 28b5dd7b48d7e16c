import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { Ids, type OrgId } from "@seatrial/domain"
import { ConfigProvider, Context, Deferred, Effect, Latch, Layer, Option, type Redacted, type Scope, Stream } from "effect"
import type { SqlError } from "effect/sql"
import { inject } from "vitest"
import { roleName } from "../src/access/applyAccess.ts"
import { type Role, roles, tables } from "../src/access/tables.ts"
import { connect } from "../src/Database.ts"
import {
  AcrossPool,
  ApiKeys,
  Catalog,
  Database,
  Deployments,
  HubConnections,
  Metering,
  Organizations,
  ReadPool,
  Requests,
  Runs,
  TenantScope
} from "../src/index.ts"
import { makeReadAccount } from "../src/spending/readAccount.ts"
import { endOf, startOf } from "./requestRows.ts"
import { encryptionKey } from "./stage.ts"
import { beginRequest, makeCaller, makeServing, makeTestDatabase } from "./support/index.ts"

/** The URL of the database that the owner and the roles share. */
class Url extends Context.Service<Url, Redacted.Redacted<string>>()("seatrial/test/Url") {
  static readonly layer = Layer.effect(
    Url,
    Effect.suspend(() => makeTestDatabase(inject("postgres")))
  )
}

const layerOwner = Layer.mergeAll(Runs.layerSql, Metering.layerSql, Requests.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql)),
  Layer.provideMerge([Layer.unwrap(Effect.map(Url, (url) => Database.layerUrl(url))), Ids.layer]),
  Layer.provideMerge(Url.layer),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey })))
)

const poolSize = 3

/** The pools of a program, with the privileges of its role. */
const poolsOf = (
  role: Role,
  tenants: boolean | string = role === "server"
): Effect.Effect<Context.Context<PgClient.PgClient | ReadPool>, SqlError.SqlError, Url | Scope.Scope> =>
  Effect.flatMap(Url, (url) => Layer.build(connect({ url, poolSize, readPoolSize: 1, applicationName: `test-${role}`, role: roleName(role), tenants })))

const clientOf = (role: Role, tenants?: boolean | string) => Effect.map(poolsOf(role, tenants), (pools) => Context.get(pools, PgClient.PgClient))

/** The innermost error message, from Postgres. */
const reasonOf = (error: Error): string => (error.cause instanceof Error ? reasonOf(error.cause) : error.message)

const inOrganization = (orgId: string) => Effect.provideService(TenantScope, orgId)

/** Two organizations with rows in every table that requests and deployments write. */
const twoOrganizations = Effect.gen(function* () {
  const metering = yield* Metering
  const sql = yield* PgClient.PgClient
  const organizations = []
  for (const slug of [`a-${crypto.randomUUID().slice(0, 8)}`, `b-${crypto.randomUUID().slice(0, 8)}`]) {
    const { caller } = yield* makeCaller(slug)
    const served = yield* makeServing(caller, slug, "tiny")
    const start = yield* startOf(caller, served)
    yield* beginRequest(metering, start)
    yield* metering.end(endOf(start))
    yield* sql`INSERT INTO hub_connections (org_id, user_id, sealed_token, created_at, updated_at) VALUES (${caller.orgId}, ${caller.userId}, 'sealed', now(), now())`
    organizations.push({ caller, served, start })
  }
  const [own, other] = organizations
  if (own === undefined || other === undefined) return yield* Effect.die("no organizations")
  return { own, other }
})

describe("access to the database", () => {
  layer(layerOwner, { excludeTestServices: true })((it) => {
    it.effect("is listed for every table, and every table of an organization has row-level security, including tables of a later version", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const results = yield* sql<{ readonly name: string; readonly tenant: boolean; readonly secured: boolean }>`
          SELECT c.relname::text AS name, c.relrowsecurity AS secured,
            c.relname = 'organizations' OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org_id' AND NOT a.attisdropped) AS tenant
          FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          ORDER BY c.relname COLLATE "C"`
        assert.deepStrictEqual(
          results.map(({ name }) => name),
          Object.keys(tables).toSorted(),
          "src/access/tables.ts lists every table"
        )
        for (const { name, secured, tenant } of results) {
          assert.strictEqual(tables[name]?.tenant !== null, tenant, `${name} belongs to an organization if it has org_id`)
          assert.strictEqual(secured, tenant, `${name} has row-level security if it belongs to an organization`)
        }
      })
    )

    it.effect("has a policy for each role with a privilege on a table with row-level security: without one the role would read no rows", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const rows = yield* sql<{ readonly name: string; readonly role: string }>`
          SELECT c.relname::text AS name, role FROM pg_class c, unnest(${roles.map(roleName)}::text[]) role
          WHERE c.relnamespace = current_schema()::regnamespace AND c.relrowsecurity AND NOT c.relispartition
            AND has_any_column_privilege(role, c.oid, 'SELECT, INSERT, UPDATE')
            AND NOT EXISTS (SELECT FROM pg_policies p WHERE p.schemaname = current_schema() AND p.tablename = c.relname AND role = ANY(p.roles))`
        assert.deepStrictEqual(rows, [])
      })
    )

    it.effect("of the server reads and writes rows of its current organization only, and no rows without one", () =>
      Effect.gen(function* () {
        const { other, own } = yield* twoOrganizations
        const owner = yield* PgClient.PgClient
        const server = yield* clientOf("server")
        for (const [table, { grants, tenant }] of Object.entries(tables)) {
          if (tenant === null) continue
          const count = server<{ readonly own: number; readonly all: number }>`
            SELECT count(*) FILTER (WHERE ${server(tenant)} = ${own.caller.orgId})::int AS own, count(*)::int AS all FROM ${server(table)}`
          const change = server`UPDATE ${server(table)} SET ${server(tenant)} = ${server(tenant)} RETURNING 1`
          const remove = server`DELETE FROM ${server(table)} RETURNING 1`
          if (grants.server === undefined || grants.server.every((grant) => grant === "INSERT")) {
            assert.match(reasonOf(yield* Effect.flip(inOrganization(own.caller.orgId)(count))), /permission denied/i, table)
          } else {
            assert.deepStrictEqual((yield* count)[0], { own: 0, all: 0 }, table)
            const [row] = yield* inOrganization(own.caller.orgId)(count)
            assert.strictEqual(row?.own, row?.all, table)
            const [real] = yield* owner<{ readonly n: number }>`SELECT count(*)::int AS n FROM ${owner(table)} WHERE ${owner(tenant)} = ${own.caller.orgId}`
            assert.strictEqual(row?.all, real?.n, table)
          }
          // Without an organization nothing changes, because of grants or row-level security.
          for (const statement of [change, remove]) assert.lengthOf(yield* Effect.orElseSucceed(statement, () => []), 0, table)
        }
        const insert = server`
          INSERT INTO outbox (org_id, deployment_id, created_at) VALUES (${other.caller.orgId}, 'dep_x', now())`
        for (const attempt of [insert, inOrganization(own.caller.orgId)(insert)]) assert.match(reasonOf(yield* Effect.flip(attempt)), /row-level security/i)
        yield* inOrganization(other.caller.orgId)(insert)
        const moved = inOrganization(own.caller.orgId)(server`UPDATE deployments SET org_id = ${other.caller.orgId} RETURNING 1`)
        assert.match(reasonOf(yield* Effect.flip(moved)), /row-level security/i)
      }).pipe(Effect.scoped)
    )

    it.effect("of the server across organizations reads only published models and their serving revisions", () =>
      Effect.gen(function* () {
        const { other, own } = yield* twoOrganizations
        const owner = yield* PgClient.PgClient
        yield* owner`UPDATE models SET visibility = 'public' WHERE id = ${other.served.modelId}`
        const server = yield* clientOf("server", "*")
        const idsOf = (table: string) => Effect.map(server<{ readonly id: string }>`SELECT id FROM ${server(table)}`, (rows) => rows.map(({ id }) => id))
        const models = yield* idsOf("models")
        assert.include(models, other.served.modelId)
        assert.notInclude(models, own.served.modelId)
        const revisions = yield* idsOf("revisions")
        assert.include(revisions, other.served.revisionId)
        assert.notInclude(revisions, own.served.revisionId)
        assert.lengthOf(revisions, models.length)

        const context = yield* Layer.build(
          Catalog.layerServer.pipe(Layer.provide([Layer.succeed(PgClient.PgClient, yield* clientOf("server")), Layer.succeed(AcrossPool, server)]))
        )
        const catalog = Context.get(context, Catalog)
        const revisionsOf = (results: Iterable<{ readonly revisionId: string }>) => [...results].map(({ revisionId }) => revisionId)
        assert.include(revisionsOf(Option.getOrThrow(yield* Stream.runHead(catalog.published))), other.served.revisionId)
        const orgId = own.caller.orgId
        assert.deepStrictEqual(revisionsOf(yield* inOrganization(orgId)(catalog.ownedBy(orgId))), [own.served.revisionId])
        const find = (orgId: OrgId, model: string) =>
          Effect.map(inOrganization(orgId)(catalog.find(orgId, model)), (results) => revisionsOf(Option.toArray(results)))
        assert.deepStrictEqual(yield* find(orgId, own.served.model), [own.served.revisionId])
        // The published model has the bare name.
        assert.deepStrictEqual(yield* find(orgId, "tiny"), [other.served.revisionId])
        assert.deepStrictEqual(yield* find(other.caller.orgId, own.served.model), [])
        yield* owner`UPDATE models SET active_revision_id = NULL WHERE id = ${other.served.modelId}`
        assert.notInclude(yield* idsOf("revisions"), other.served.revisionId)
      }).pipe(Effect.scoped)
    )

    it.effect("of the server uses separate pools for keys and for an organization's models: neither waits for the other", () =>
      Effect.gen(function* () {
        const { caller, secret } = yield* makeCaller(`pools-${crypto.randomUUID().slice(0, 8)}`)
        const served = yield* makeServing(caller, "pools", "tiny")
        const [server, across] = [yield* clientOf("server"), yield* clientOf("server", "*")]
        const layerAcross = Layer.succeed(AcrossPool, across)
        const layerOwn = Layer.succeed(PgClient.PgClient, server)
        const context = yield* Layer.build(
          Layer.merge(
            Catalog.layerServer.pipe(Layer.provide([layerOwn, layerAcross])),
            ApiKeys.layerSql.pipe(Layer.provide([Layer.effect(PgClient.PgClient, AcrossPool).pipe(Layer.provide(layerAcross)), Ids.layer]))
          )
        )
        const [catalog, keys] = [Context.get(context, Catalog), Context.get(context, ApiKeys)]
        /** Takes every connection of a pool while the effect runs. */
        const whileFull = Effect.fnUntraced(function* <A, E>(pool: PgClient.PgClient, effect: Effect.Effect<A, E>) {
          const over = yield* Deferred.make<void>()
          const taken = yield* Latch.make()
          let count = 0
          const take = Effect.sync(() => ++count === poolSize).pipe(Effect.flatMap((isFull) => (isFull ? taken.open : Effect.void)))
          const hold = pool.withTransaction(Effect.andThen(pool`SELECT 1`, Effect.andThen(take, Deferred.await(over))))
          for (let index = 0; index < poolSize; index++) yield* Effect.forkChild(hold)
          yield* taken.await
          return yield* Effect.ensuring(effect, Deferred.succeed(over, undefined))
        })
        const models = yield* whileFull(across, inOrganization(caller.orgId)(catalog.ownedBy(caller.orgId)))
        assert.deepStrictEqual(
          models.map(({ model }) => model),
          [served.model]
        )
        const results = yield* whileFull(server, keys.authenticate(secret))
        assert.strictEqual(Option.getOrThrow(results).orgId, caller.orgId)
      }).pipe(Effect.scoped)
    )

    it.effect("of the server follows the organization of each fiber, in transactions and after a rollback", () =>
      Effect.gen(function* () {
        const { other, own } = yield* twoOrganizations
        const server = yield* clientOf("server")
        const ids = server<{ readonly id: string }>`SELECT id FROM organizations`
        const sees = (orgId: string) => Effect.map(inOrganization(orgId)(ids), (rows) => assert.deepStrictEqual(rows, [{ id: orgId }]))
        const turns = Array.from({ length: 60 }, (_, turn) => (turn % 2 === 0 ? own : other).caller.orgId)
        yield* Effect.forEach(turns, sees, { concurrency: "unbounded" })
        yield* Effect.forEach(
          turns,
          (orgId, turn) =>
            Effect.gen(function* () {
              yield* sees(orgId)
              yield* Effect.ignore(server.withTransaction(Effect.andThen(sees(other.caller.orgId), Effect.fail("back"))))
              yield* sees(orgId)
              if (turn % 3 === 0) return yield* Effect.fail("back")
            }).pipe(server.withTransaction, Effect.ignore, Effect.andThen(sees(orgId))),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(yield* ids, 0)
      }).pipe(Effect.scoped)
    )

    it.effect("of the server's read pool returns a request and its receipt to its organization only, even if one statement reads for many", () =>
      Effect.gen(function* () {
        const { other, own } = yield* twoOrganizations
        const pools = yield* poolsOf("server")
        const requests = Context.get(yield* Layer.build(Requests.layerSql.pipe(Layer.provide(Layer.succeedContext(pools)))), Requests)
        const results = yield* Effect.all(
          [own, other].flatMap(({ caller }) =>
            [own, other].flatMap(({ start }) => [requests.find(caller.orgId, start.id), requests.findReceipt(caller.orgId, start.id)])
          ),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          results.map(({ _tag }) => _tag),
          ["Some", "Some", "None", "None", "None", "None", "Some", "Some"]
        )
        const lists = yield* Effect.all(
          [own, other].map(({ caller }) => requests.list(caller.orgId, { limit: 50, after: null })),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          lists.map(({ items }) => items.map(({ id }) => id)),
          [[own.start.id], [other.start.id]]
        )
        const reads = Context.get(pools, ReadPool)
        for (const table of ["requests", "receipts", "organization_requests"]) assert.lengthOf(yield* reads`SELECT FROM ${reads(table)}`, 0)
      }).pipe(Effect.scoped)
    )

    const denied = {
      server: [
        "SELECT email FROM users",
        "SELECT * FROM invitations",
        "SELECT * FROM purchases",
        "INSERT INTO requests DEFAULT VALUES",
        "UPDATE api_keys SET expires_at = NULL",
        "INSERT INTO api_keys DEFAULT VALUES",
        "UPDATE organizations SET gpu_limit = 9",
        "DELETE FROM audit_events"
      ],
      gateway: [
        "SELECT sealed_token FROM hub_connections",
        "SELECT * FROM audit_events",
        "SELECT * FROM users",
        "SELECT * FROM receipts",
        "SELECT model, revision_id FROM receipts",
        "UPDATE api_keys SET scopes = '{}'",
        "UPDATE models SET visibility = 'public'",
        "UPDATE revisions SET input_micros_per_mtok = 0",
        "DELETE FROM requests",
        "SELECT retire_old_month('requests', 1)"
      ],
      operator: [
        "SELECT secret_sha256 FROM api_keys",
        "SELECT * FROM receipts",
        "UPDATE requests SET cost_micros = 0",
        "UPDATE organizations SET status = 'active'",
        "INSERT INTO credits DEFAULT VALUES",
        "UPDATE hub_connections SET shared = true",
        "SELECT drop_retired_months()"
      ],
      admin: ["SELECT retire_old_month('requests', 1)", "UPDATE applied_access SET definition = '' WHERE false; DROP POLICY seatrial_admin_all ON models"]
    } as const
    for (const role of ["gateway", "operator", "server"] as const) {
      it.effect(`of the ${role} is sufficient to read what an organization spends`, () =>
        Effect.gen(function* () {
          const { own } = yield* twoOrganizations
          const { orgId } = own.caller
          const owner = yield* PgClient.PgClient
          yield* owner`UPDATE organizations SET prepaid = true WHERE id = ${orgId}`
          const account = yield* makeReadAccount(yield* clientOf(role))(orgId).pipe(inOrganization(orgId))
          assert.deepStrictEqual(account.allowances(null, { organization: 0n, key: 0n }), [
            { of: "organization", kind: "balance", limit: 5_000_000n, spent: 700n, period: "5000000" }
          ])
        }).pipe(Effect.scoped)
      )
    }
    for (const role of roles) {
      it.effect(`of the ${role} excludes everything that it does not need, and every change of the schema`, () =>
        Effect.gen(function* () {
          const sql = yield* clientOf(role, "*")
          const schema = [
            "ALTER TABLE models ADD COLUMN x int",
            "TRUNCATE requests",
            "DROP TABLE models",
            "CREATE TABLE t (x int)",
            "ALTER TABLE models DISABLE ROW LEVEL SECURITY",
            "CREATE ROLE x",
            "UPDATE schema_requirements SET minimum_program_schema = 0",
            "DELETE FROM migrations"
          ]
          for (const statement of [...denied[role], ...schema]) {
            const error = yield* Effect.flip(sql.unsafe(statement))
            assert.match(reasonOf(error), /permission denied|must be owner|cannot insert multiple commands/i, `${role}: ${statement}`)
          }
        }).pipe(Effect.scoped)
      )
    }
  })

  it.live("is applied again only for changed definitions, and never by an older version", () =>
    Effect.gen(function* () {
      const url = yield* makeTestDatabase(inject("postgres"))
      yield* Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const grants = Effect.map(sql`SELECT has_table_privilege('seatrial_server', 'deployments', 'SELECT') AS yes`, ([row]) => row)
        yield* sql`REVOKE SELECT ON deployments FROM seatrial_server`
        yield* Database.migrate
        assert.deepStrictEqual<unknown>(yield* grants, { yes: false })
        yield* sql`UPDATE applied_access SET definition = 'of another version' WHERE object = 'deployments'`
        yield* sql`INSERT INTO migrations (migration_id, name) VALUES (9000, 'later')`
        yield* Database.migrate
        assert.deepStrictEqual<unknown>(yield* grants, { yes: false })
        yield* sql`DELETE FROM migrations WHERE migration_id = 9000`
        yield* Database.migrate
        assert.deepStrictEqual<unknown>(yield* grants, { yes: true })
      }).pipe(Effect.provide(PgClient.layer({ url, maxConnections: 1 })))
    }).pipe(Effect.scoped)
  )
})
