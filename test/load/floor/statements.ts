const requestColumns = `id, state, model_id, model, api_key_id, endpoint, created_at, status_code, input_tokens, output_tokens, cache_read_tokens,
  cache_write_tokens, cost_micros, ttft_ms, latency_ms, finish_reason, streamed, error_code, error_message, error_param`

/** The queries of the minimal servers: those of the server, written out. The benchmark first checks that both return the same records. */
export const statements = {
  deployment: {
    name: "deployment",
    text: `
      SELECT d.id, 'deployment' AS object, d.model_id, CASE m.visibility WHEN 'public' THEN m.slug ELSE o.slug || '/' || m.slug END AS model,
        d.phase AS status, d.failure_code || ': ' || d.failure_text AS failure_detail, d.created_at, d.updated_at, d.ended_at, d.revision_id,
        r.hf_revision, d.started_by_user_id,
        (SELECT json_agg(json_build_object('status', p.phase, 'at', to_char(p.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')) ORDER BY p.seq)
          FROM deployment_phases p WHERE p.org_id = d.org_id AND p.deployment_id = d.id) AS phases,
        coalesce(r.checks -> 'checks', '[]') AS checks,
        CASE WHEN r.id IS NOT NULL THEN json_build_object(
          'id', r.id, 'status', r.status, 'hf_revision', r.hf_revision, 'dtype', r.dtype, 'quantization', r.quantization, 'max_model_len', r.max_model_len,
          'engine', r.runtime, 'engine_version', r.engine_version, 'gpu_pool', r.gpu_pool, 'gpu_count', r.gpu_count,
          'prices', json_build_object(
            'input_micros_per_mtok', r.input_micros_per_mtok::text, 'output_micros_per_mtok', r.output_micros_per_mtok::text,
            'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text, 'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text),
          'verified_at', to_char(r.verified_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
        ) END AS revision
      FROM deployments d
      JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
      JOIN organizations o ON o.id = d.org_id
      LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
      WHERE d.org_id = $1 AND d.id = $2`
  },
  request: {
    name: "request",
    text: `SELECT ${requestColumns} FROM requests WHERE org_id = $1 AND created_at = $3 AND id = $2`
  },
  create: {
    name: "create",
    text: `
      WITH bound AS (
        INSERT INTO idempotency_keys (org_id, operation, key, input_hash, deployment_id, created_at)
        VALUES ($1, 'deployments.create', $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1
      ),
      model AS (
        INSERT INTO models (id, org_id, slug, display_name, hf_repo, created_at, updated_at)
        SELECT $7, $1, $8, $8, $9, $6, $6 FROM bound RETURNING id, org_id
      ),
      made AS (
        INSERT INTO deployments (id, org_id, model_id, phase, phase_since, serving, serve, started_by_user_id, created_at, updated_at)
        SELECT $5, org_id, id, 'screening', $6, '{}', true, $2, $6, $6 FROM model RETURNING id, org_id, model_id
      ),
      entered AS (
        INSERT INTO deployment_phases (org_id, deployment_id, seq, phase, at, reason) SELECT org_id, id, 1, 'screening', $6, 'Created' FROM made
      ),
      told AS (
        INSERT INTO audit_events (org_id, created_at, id, actor_kind, actor_user_id, resource_type, resource_id, action, before, after)
        SELECT org_id, $6, $10, 'user', $2, 'model_config', model_id, 'created', 'null'::jsonb, $11 FROM made
      ),
      work AS (INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, id, $6 FROM made)
      SELECT id, model_id, pg_notify('deployments', id) FROM made`
  },
  list: {
    name: "list",
    text: `SELECT ${requestColumns} FROM requests WHERE org_id = $1 AND state <> 'running' ORDER BY created_at DESC, id DESC LIMIT $2`
  }
} as const
