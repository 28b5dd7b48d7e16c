import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids, type OrgId, SuspicionId } from "@seatrial/domain"
import { Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { type AuditEventQuery, listStatement as listAuditEvents } from "../src/AuditEvents.ts"
import { type DeploymentQuery, listStatement as listDeployments } from "../src/deployments/statements.ts"
import { listStatement as listModels, type OrgModelQuery } from "../src/OrgModels.ts"
import { listStatement as listSuspicions, requestsStatement } from "../src/Suspicions.ts"
import { TenantScope } from "../src/tenants.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller } from "./support/index.ts"

const rows = 10_000
const page = 50
const start = Date.UTC(2026, 0, 1)
const [rareEngine, oftenEngine] = ["01890000-0000-4000-8000-000000000001", "01890000-0000-4000-8000-000000000002"]

/** Inserts rows directly: 40 organizations, one of which has half of the rows, with rare and common values. */
const fill = Effect.fnUntraced(function* (orgId: OrgId) {
  const sql = yield* PgClient.PgClient
  const at = new Date(start)
  yield* sql`
    INSERT INTO organizations (id, slug, name, status, created_at, updated_at)
    SELECT 'org_' || lpad(n::text, 26, '0'), 'plans-' || n, 'Plans', 'active', ${at}, ${at} FROM generate_series(1, 39) n`
  const org = sql`CASE WHEN n % 2 = 0 THEN ${orgId} ELSE 'org_' || lpad((1 + n % 39)::text, 26, '0') END`
  const time = sql`${at}::timestamptz + n / 5 * interval '1 second'`
  yield* sql`
    INSERT INTO models (id, org_id, slug, display_name, status, visibility, hf_repo, created_at, updated_at, deleted_at)
    SELECT 'mdl_' || lpad(n::text, 26, '0'), ${org}, 'model-' || n, 'Model ' || n,
      CASE WHEN n % 1000 = 0 THEN 'disabled' WHEN n % 10 = 0 THEN 'active' ELSE 'pending' END, CASE WHEN n % 500 = 0 THEN 'public' ELSE 'private' END,
      'owner/model', ${time}, ${time}, CASE WHEN n % 7 = 0 THEN ${at}::timestamptz END
    FROM generate_series(1, ${rows}::integer) n`
  yield* sql`
    INSERT INTO revisions (id, org_id, model_id, status, hf_repo, hf_revision, facts, settings, runtime, engine_version, estimate, dtype, quantization,
      max_model_len, gpu_pool, gpu_count, created_at, updated_at)
    SELECT replace(id, 'mdl', 'rev') || n, org_id, id, CASE WHEN n = 3 AND status = 'active' THEN 'active' ELSE 'draft' END, hf_repo, 'c', '{}', '{}', 'reference',
      '1', '{}', 'bfloat16', 'none', 1024, 'pool', 1, created_at, created_at
    FROM models, generate_series(1, 3) n`
  yield* sql`UPDATE models SET active_revision_id = replace(id, 'mdl', 'rev') || 3 WHERE status = 'active'`
  yield* sql`
    INSERT INTO deployments (id, org_id, model_id, phase, phase_since, failure_code, failure_text, serving, serve, created_at, updated_at, ended_at)
    SELECT 'dep_' || lpad(n::text, 26, '0'), ${org}, 'mdl_' || lpad((CASE WHEN n % 4 = 0 THEN 2 ELSE n % 3000 + 1 END)::text, 26, '0'), phase, ${time},
      CASE WHEN phase = 'failed' THEN 'x' END, CASE WHEN phase = 'failed' THEN 'y' END, '{}', true, ${time}, ${time},
      CASE WHEN phase NOT IN ('queued', 'booting') THEN ${time} END
    FROM generate_series(1, ${rows}::integer) n,
      LATERAL (SELECT CASE WHEN n % 1000 = 0 THEN 'cancelled' WHEN n % 100 = 0 THEN 'queued' WHEN n % 99 = 0 THEN 'booting' WHEN n % 3 = 0 THEN 'failed'
        ELSE 'activated' END AS phase)`
  yield* sql`
    INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
    SELECT ${org}, ${time}, 'aud_' || lpad(n::text, 26, '0'), 'user', CASE WHEN n % 3 > 0 THEN 'usr_' || n % 50 END,
      CASE WHEN n % 1000 = 0 THEN 'org' WHEN n % 50 = 0 THEN 'api_key' ELSE 'model_config' END, 'x', 'created', 'null', 'null'
    FROM generate_series(1, ${rows}::integer) n`
  yield* sql`
    INSERT INTO suspicions (org_id, created_at, id, deployment_id, model_id, revision_id, pod, pod_uid, restarts, since, probes, evidence)
    SELECT d.org_id, ${time}, 'sus_' || lpad(n::text, 26, '0'), d.id, d.model_id, 'rev', 'pod', 'uid-' || n, 0, ${time}, 21, 1
    FROM generate_series(1, ${rows}::integer) n JOIN deployments d ON d.id = 'dep_' || lpad(n::text, 26, '0')`
  // Two engines answered the requests of one model, of which one answered few. Its suspicion is the newest.
  const suspicion = yield* (yield* Ids).make(SuspicionId, start)
  yield* sql`
    INSERT INTO suspicions (org_id, created_at, id, deployment_id, model_id, revision_id, pod, pod_uid, restarts, since, probes, evidence)
    SELECT org_id, ${at}, ${suspicion}, id, model_id, 'rev', 'pod', ${rareEngine}, 0, ${at}, 21, 1 FROM deployments WHERE org_id = ${orgId} LIMIT 1`
  yield* sql`SELECT ensure_request_partitions(${at}, ${at})`
  yield* sql`
    INSERT INTO requests (org_id, created_at, id, state, model_id, model, endpoint, status_code, latency_ms, cost_micros, engine)
    SELECT ${org}, ${time}, 'req_' || lpad(n::text, 26, '0'), 'completed', 'mdl', 'm', '/', CASE WHEN n % 50 = 0 THEN 500 ELSE 200 END, 5, 0,
      CASE WHEN n % 20 < 2 THEN ${rareEngine}::uuid WHEN n % 9 > 0 THEN ${oftenEngine}::uuid END
    FROM generate_series(1, ${rows}::integer) n`
  yield* sql`ANALYZE`
  return suspicion
})

const models: ReadonlyArray<Omit<OrgModelQuery, "limit" | "after">> = [undefined, "pending", "active", "disabled"].flatMap((status) =>
  [undefined, "public", "private"].flatMap((visibility) =>
    [undefined, "99", "nobody"].map((q) => ({
      ...(status === "pending" || status === "active" || status === "disabled" ? { status } : {}),
      ...(visibility === "public" || visibility === "private" ? { visibility } : {}),
      ...(q === undefined ? {} : { q })
    }))
  )
)
const deployments: ReadonlyArray<Omit<DeploymentQuery, "limit" | "after">> = [undefined, `mdl_${"2".padStart(26, "0")}`, `mdl_${"9".repeat(26)}`].flatMap(
  (modelId) =>
    ([undefined, "running", "succeeded", "failed", "stopped"] as const).map((bucket) => ({
      ...(modelId === undefined ? {} : { modelId }),
      ...(bucket === undefined ? {} : { bucket })
    }))
)
const audit: ReadonlyArray<Omit<AuditEventQuery, "limit" | "after">> = [undefined, "usr_1", "usr_nobody"].flatMap((actorUserId) =>
  ([undefined, "org", "model_config"] as const).flatMap((resourceType) =>
    [{}, { from: start + 500_000 }, { to: start + 700_000 }, { from: start + 500_000, to: start + 700_000 }].map((times) => ({
      ...times,
      ...(actorUserId === undefined ? {} : { actorUserId }),
      ...(resourceType === undefined ? {} : { resourceType })
    }))
  )
)

const literal = (value: unknown) => `'${value instanceof Date ? value.toISOString() : String(value).replaceAll("'", "''")}'`

layer(layerStore, { excludeTestServices: true })("lists of models, deployments and audit events", (it) => {
  it.effect("read one index range per page, for all filters, pages and plan modes", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { caller } = yield* makeCaller("plans")
      const { orgId } = caller
      const suspicion = yield* fill(orgId)
      // As the server runs them: with row-level security.
      const server = Context.get(yield* Layer.build(layerRole("server")), PgClient.PgClient)
      const check = Effect.fnUntraced(function* (statement: Statement.Statement<object>, table: string, what: string, filtered: number) {
        const [text, parameters] = statement.compile()
        // Checks both plan modes, because connections keep prepared statements and Postgres may choose either.
        for (const mode of ["force_custom_plan", "force_generic_plan"]) {
          const lines = yield* Effect.gen(function* () {
            yield* server`SET LOCAL plan_cache_mode = ${sql.literal(mode)}`
            yield* server.unsafe(`PREPARE listed AS ${text}`).unprepared
            const plan = yield* server.unsafe<{ "QUERY PLAN": string }>(`EXPLAIN (ANALYZE, TIMING OFF) EXECUTE listed(${parameters.map(literal).join(", ")})`)
              .unprepared
            yield* server`DEALLOCATE listed`
            return plan
          }).pipe(server.withTransaction, Effect.provideService(TenantScope, orgId))
          const plan = lines.map((line) => line["QUERY PLAN"]).join("\n")
          const planText = `${what} (${mode})\n${plan}`
          const counts = (pattern: RegExp) => Array.from(plan.matchAll(pattern), ([, count]) => Number(count))
          assert.notMatch(plan, /Seq Scan on (models|revisions|deployments|audit_events|suspicions|requests_2026_01)/, planText)
          assert.match(plan, new RegExp(`(using|on) ${table}_`), planText)
          for (const sorted of counts(/Sort +\(cost=.* rows=([\d.]+) loops/g)) assert.isAtMost(sorted, page + 1, planText)
          for (const removed of counts(/Rows Removed by [A-Za-z ]+: (\d+)/g)) assert.isAtMost(removed, filtered, planText)
        }
      })
      for (const after of [null, { createdAt: start + 600_000, id: "x" }]) {
        const position = { limit: page, after }
        // Only `q` has no index: it scans the organization's models.
        for (const query of models) {
          yield* check(listModels(sql, orgId, { ...query, ...position }), "models", `models ${JSON.stringify(query)}`, query.q === undefined ? page : rows)
        }
        for (const query of deployments) yield* check(listDeployments(sql, orgId, { ...query, ...position }), "deployments", JSON.stringify(query), page)
        yield* check(listSuspicions(sql, orgId, position), "suspicions", "suspicions", page)
        yield* check(requestsStatement(sql, orgId, suspicion, position), "requests_2026_01_uuid_hash_extended", "requests of a suspicion", page)
        for (const query of audit) yield* check(listAuditEvents(sql, orgId, { ...query, ...position }), "audit_events", JSON.stringify(query), page)
      }
    }).pipe(Effect.scoped)
  )
})
