import { workingPhases } from "@seatrial/domain"
import { Effect, Schema } from "effect"
import { idSql } from "./idSql.ts"
import type { Lab } from "./Lab.ts"

const checks = {
  suite: "bench",
  suite_version: 1,
  passed: true,
  checks: ["chat-template", "greedy-repeats", "stop-sequence", "stream-equals-whole", "usage-exact", "context-limit"].map((name) => ({
    name,
    passed: true,
    detail: "12 of 12"
  })),
  fingerprints: [],
  fingerprint_card: null
}

const phases = `ARRAY[${[...workingPhases, "activated"].map((phase) => `'${phase}'`).join(", ")}]`

/** Creates models with one activated deployment each, with every phase. Returns the IDs of the deployments. */
export const makeDeployments = Effect.fn("makeDeployments")(function* ({ orgId, sql, userId }: Lab, count: number) {
  const now = Date.now()
  // Each one is a second older than the previous one.
  const ms = `(${now}::bigint - n * 1000)`
  const id = (prefix: string) => sql.literal(idSql(prefix, ms, `md5('${prefix}' || n)`))
  const at = sql.literal(`to_timestamp(${ms} / 1000.0)`)
  const numbers = sql`FROM generate_series(1, ${count}::bigint) AS n`
  yield* sql`
    INSERT INTO models (id, org_id, slug, display_name, status, hf_repo, ref, hf_revision, active_revision_id, created_at, updated_at)
    SELECT ${id("mdl")}, ${orgId}, 'model-' || n, 'Model ' || n, 'active', 'bench/model-' || n, 'main', md5(n::text) || '00000000', ${id("rev")}, ${at}, ${at} ${numbers}`
  yield* sql`
    INSERT INTO revisions (id, org_id, model_id, status, hf_repo, hf_revision, facts, settings, runtime, engine_version, estimate, dtype, quantization, max_model_len,
      gpu_pool, gpu_count, checks, verified_at, created_at, updated_at)
    SELECT ${id("rev")}, ${orgId}, ${id("mdl")}, 'active', 'bench/model-' || n, md5(n::text) || '00000000', '{}', '{}', 'vllm', '0.11.0', '{}', 'bfloat16', 'none', 32768,
      'bench-pool', 1, ${sql.json(checks)}, ${at}, ${at}, ${at} ${numbers}`
  yield* sql`
    INSERT INTO deployments (id, org_id, model_id, revision_id, phase, phase_since, phase_count, ref, serving, serve, started_by_user_id, created_at, updated_at, ended_at)
    SELECT ${id("dep")}, ${orgId}, ${id("mdl")}, ${id("rev")}, 'activated', ${at}, 11, 'main', '{}', true, ${userId}, ${at}, ${at}, ${at} ${numbers}`
  yield* sql`
    INSERT INTO deployment_phases (org_id, deployment_id, seq, phase, at, reason)
    SELECT ${orgId}, ${id("dep")}, p.seq, p.phase, ${at}, 'Bench' ${numbers}, unnest(${sql.literal(phases)}) WITH ORDINALITY AS p (phase, seq)`
  yield* sql`VACUUM (ANALYZE) models, revisions, deployments, deployment_phases`
  const rows = yield* sql`SELECT id FROM deployments WHERE org_id = ${orgId} ORDER BY md5(id) LIMIT 1000`
  return (yield* Effect.orDie(Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ id: Schema.String })))(rows))).map((row) => row.id)
})

interface Route {
  /** Different for each model of a lab, from 1. */
  readonly number: number
  /** The addresses of its engines. */
  readonly urls: ReadonlyArray<string>
}

/** Creates a model whose active revision is served by these engines, as the operator would. Returns its callable name. */
export const makeRoute = Effect.fn("makeRoute")(function* ({ orgId, orgSlug, sql }: Lab, { number, urls }: Route) {
  const id = (prefix: string) => `${prefix}_${String(number).padStart(26, "0")}`
  const slug = `routed-${number}`
  yield* sql`
    INSERT INTO models (id, org_id, slug, display_name, status, hf_repo, active_revision_id, created_at, updated_at)
    VALUES (${id("mdl")}, ${orgId}, ${slug}, 'Routed', 'active', 'bench/routed', ${id("rev")}, now(), now())`
  yield* sql`
    INSERT INTO revisions (id, org_id, model_id, status, hf_repo, hf_revision, facts, settings, runtime, engine_version, estimate, dtype, quantization, max_model_len,
      gpu_pool, gpu_count, input_micros_per_mtok, output_micros_per_mtok, created_at, updated_at)
    SELECT ${id("rev")}, org_id, id, 'active', hf_repo, ${"0".repeat(40)}, '{}', '{}', 'vllm', '0.11.0', '{}', 'bfloat16', 'none', 32768,
      'bench-pool', 1, 100000, 400000, now(), now()
    FROM models WHERE org_id = ${orgId} AND slug = ${slug}`
  yield* sql`
    INSERT INTO deployments (id, org_id, model_id, revision_id, phase, phase_since, serving, serve, created_at, updated_at, ended_at)
    SELECT ${id("dep")}, org_id, model_id, id, 'activated', now(), '{}', true, now(), now(), now()
    FROM revisions WHERE org_id = ${orgId} AND id = ${id("rev")}`
  yield* Effect.forEach(
    urls.entries(),
    ([engine, url]) => sql`
      INSERT INTO endpoints (org_id, revision_id, url, pod, deployment_id, published_at, reachable_at)
      SELECT org_id, revision_id, ${url}, ${`bench-${number}-${engine}`}, id, now(), now()
      FROM deployments WHERE org_id = ${orgId} AND id = ${id("dep")}`,
    { discard: true }
  )
  return `${orgSlug}/${slug}`
})
