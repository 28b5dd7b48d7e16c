import type { PgClient } from "@effect/sql-pg"
import {
  Benchmark,
  Choices,
  DeploymentId,
  isUnplaced,
  Measured,
  ModelCapabilities,
  ModelEngines,
  ModelId,
  OrgId,
  Phase,
  phasesWith,
  ReplicaLimits,
  RepositoryFacts,
  RevisionId,
  RevisionStatus,
  RunProgress,
  ServingRequest,
  ServingSettings,
  Source,
  StoredCheckReport,
  UserId
} from "@seatrial/domain"
import { Clock, Effect, type Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { callableName, MillisFromDate, phaseList } from "../columns.ts"
import { interchangeable } from "../routes/interchangeable.ts"
import { differs } from "./nodeFaults.ts"
import type { Run, ServingPlan } from "./Run.ts"

const unplacedPhases = phaseList(Phase.literals.filter(isUnplaced))
const weightPhases = phaseList(phasesWith(({ readsWeights }) => readsWeights))

const Interval = Schema.Struct({ low: Schema.Finite, high: Schema.Finite })
/** The part of the fit that a revision stores. */
export const Estimate = Schema.Struct({
  verdict: Schema.Literals(["fits", "tight"]),
  host_class: Schema.String,
  gpu_pool: Schema.String,
  gpu_count: Schema.Int,
  gpu_memory_bytes: Schema.Finite,
  weights_bytes: Schema.Finite,
  kv_cache_bytes: Schema.Finite,
  kv_bytes_per_token: Schema.Finite,
  overhead_bytes: Interval,
  headroom_bytes: Interval,
  max_context: Schema.Int,
  concurrent_sequences: Schema.Finite,
  calibrated: Schema.Boolean,
  unmeasured: Schema.optionalKey(Schema.Literal(true)),
  // Absent in revisions of earlier versions.
  chosen_by: Schema.optionalKey(Choices),
  components: Schema.optionalKey(Schema.Struct({ sequence: Schema.optionalKey(Schema.Finite) }))
})

/** A plan stores all members, so that the revision gets the complete estimate of screening. */
const PlannedEstimate = Schema.StructWithRest(Estimate, [Schema.Record(Schema.String, Schema.Unknown)])

const Plan = Schema.Struct({
  settings: ServingSettings,
  engineVersion: Schema.String,
  engineImage: Schema.String,
  estimate: PlannedEstimate,
  capabilities: ModelCapabilities
})

const RunRow = Schema.Struct({
  id: DeploymentId,
  orgId: OrgId,
  orgSlug: Schema.String,
  modelId: ModelId,
  model: Schema.String,
  phase: Phase,
  phaseSince: MillisFromDate,
  requeues: Schema.Int,
  failure: Schema.NullOr(Schema.Struct({ code: Schema.String, text: Schema.String })),
  source: Source,
  servingRequest: ServingRequest,
  keptChoices: Schema.NullOr(Choices),
  serve: Schema.Boolean,
  startedBy: Schema.NullOr(UserId),
  createdAt: MillisFromDate,
  traceparent: Schema.NullOr(Schema.String),
  endedAt: Schema.NullOr(MillisFromDate),
  revision: Schema.NullOr(
    Schema.Struct({
      id: RevisionId,
      status: RevisionStatus,
      facts: RepositoryFacts,
      settings: ServingSettings,
      engineVersion: Schema.String,
      engineImage: Schema.NullOr(Schema.String),
      engineDigest: Schema.NullOr(Schema.String),
      estimate: Estimate,
      checks: Schema.NullOr(StoredCheckReport),
      measured: Schema.NullOr(Measured),
      benchmark: Schema.NullOr(Benchmark)
    })
  ),
  placements: Schema.Array(Plan),
  activeRevisionId: Schema.NullOr(RevisionId),
  modelDeleted: Schema.Boolean,
  modelDisabled: Schema.Boolean,
  replicas: Schema.optionalKey(Schema.Int),
  scaling: Schema.optionalKey(Schema.NullOr(Schema.Struct({ minReplicas: Schema.Int, maxReplicas: Schema.Int, target: Schema.Finite }))),
  engines: Schema.optionalKey(Schema.NullOr(ModelEngines)),
  newer: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String))),
  earlier: Schema.optionalKey(Schema.Int),
  engineRun: DeploymentId,
  reusedBy: Schema.Array(DeploymentId),
  gpuLimit: Schema.NullOr(Schema.Int),
  spendLimited: Schema.Boolean,
  billingSuspendedAt: Schema.NullOr(MillisFromDate),
  olderRun: Schema.NullOr(DeploymentId),
  endpoints: Schema.Array(Schema.Struct({ url: Schema.String, pod: Schema.String, reachable: Schema.Boolean })),
  replaces: Schema.Boolean,
  replacedBy: Schema.NullOr(DeploymentId),
  predecessor: Schema.NullOr(
    Schema.Struct({
      run: DeploymentId,
      commit: Schema.String,
      hostClass: Schema.String,
      gpus: Schema.Int,
      replicas: Schema.Int,
      earlier: Schema.optionalKey(Schema.Int),
      differs: Schema.optionalKey(Schema.Boolean)
    })
  ),
  shownBy: Schema.NullOr(DeploymentId),
  candidates: Schema.Array(Schema.Struct({ run: DeploymentId, gpus: Schema.Int, endedAt: Schema.Finite, holdSeconds: Schema.NullOr(Schema.Int) })),
  lastUsedAt: Schema.NullOr(MillisFromDate),
  inFlight: Schema.Int,
  applied: Schema.NullOr(
    Schema.Struct({
      namespace: Schema.String,
      name: Schema.String,
      current: Schema.NullOr(
        Schema.Struct({
          uid: Schema.String,
          generation: Schema.Int,
          namesModel: Schema.Boolean,
          replicas: Schema.optionalKey(Schema.Int),
          scaling: Schema.optionalKey(ReplicaLimits)
        })
      )
    })
  ),
  storedWeights: Schema.Array(Schema.Struct({ store: Schema.String, manifest: Schema.String, verifiedBy: DeploymentId, verifiedAt: Schema.Finite })),
  nodeFaults: Schema.Array(Schema.Struct({ node: Schema.String, code: Schema.String, at: Schema.Finite })),
  history: Schema.Array(Schema.Struct({ phase: Phase, at: Schema.Finite, reason: Schema.NullOr(Schema.String) })),
  progress: Schema.NullOr(Schema.Struct({ ...RunProgress.fields, at: Schema.Finite }))
})

/** A serving option and a run as JSON values, with times in Unix milliseconds. */
export const PlanState: Schema.Codec<ServingPlan, ServingPlan> = Schema.toType(Plan)
export const RunState: Schema.Codec<Run, Run> = Schema.toType(RunRow)

/**
 * Maximum age of a request in progress, milliseconds. It exceeds the gateway's limit, and restricts the query to the
 * newest partitions.
 */
const inFlightMillis = 86_400_000

/** The revision of the run, as JSON. */
const revisionColumn = `
  CASE WHEN r.id IS NOT NULL THEN json_build_object('id', r.id, 'status', r.status, 'facts', r.facts, 'settings', r.settings,
    'engineVersion', r.engine_version, 'engineImage', r.engine_image, 'engineDigest', r.engine_digest, 'estimate', r.estimate, 'checks', r.checks, 'measured', r.measured, 'benchmark', r.benchmark) END AS revision`

/** Other runs of the same model and revision, and the endpoints of the revision. */
const relatedColumns = `
  coalesce((SELECT maker.id FROM deployments maker WHERE maker.org_id = d.org_id AND maker.revision_id = d.revision_id
    ORDER BY maker.created_at, maker.id LIMIT 1), d.id) AS "engineRun",
  coalesce((SELECT json_agg(user_run.id ORDER BY user_run.id) FROM deployments user_run
    WHERE user_run.org_id = d.org_id AND user_run.revision_id = d.revision_id AND user_run.id <> d.id AND user_run.ended_at IS NULL), '[]') AS "reusedBy",
  (SELECT older.id FROM deployments older
    WHERE older.org_id = d.org_id AND older.model_id = d.model_id AND older.ended_at IS NULL AND (older.created_at, older.id) < (d.created_at, d.id)
    ORDER BY older.created_at, older.id LIMIT 1) AS "olderRun",
  coalesce((SELECT json_agg(json_build_object('url', e.url, 'pod', e.pod, 'reachable', e.reachable_at IS NOT NULL) ORDER BY e.url)
    FROM endpoints e WHERE e.org_id = d.org_id AND e.revision_id = d.revision_id), '[]') AS endpoints`

/** The engines of revisions before `next` that answer the model's requests while it moves to `next`. */
const earlierEngines = (next: string) => `
  (SELECT count(*)::int FROM revisions v JOIN endpoints e ON e.org_id = v.org_id AND e.revision_id = v.id
    WHERE v.org_id = ${next}.org_id AND v.model_id = ${next}.model_id AND e.reachable_at IS NOT NULL AND ${interchangeable(next, "v")})`

/**
 * How far the model has moved from one revision to the next. Counts only engines that get the model's requests. If
 * the model has one engine, a revision without endpoints leaves at once.
 */
const moveColumns = `
  CASE WHEN d.phase = 'activated' AND r.status = 'superseded'
      AND (m.replicas > 1 OR EXISTS (SELECT FROM endpoints own WHERE own.org_id = r.org_id AND own.revision_id = r.id)) THEN
    (SELECT (SELECT coalesce(json_agg(e.pod ORDER BY e.pod), '[]') FROM revisions s JOIN endpoints e ON e.org_id = s.org_id AND e.revision_id = s.id
        WHERE s.org_id = d.org_id AND s.model_id = d.model_id AND e.reachable_at IS NOT NULL
          AND (s.id = a.id OR (s.created_at, s.id) > (r.created_at, r.id) AND ${interchangeable("a", "s")}))
      FROM revisions a WHERE a.org_id = d.org_id AND a.id = m.active_revision_id AND ${interchangeable("a", "r")}) END AS newer,
  CASE WHEN d.phase = 'activated' AND r.status = 'active' THEN ${earlierEngines("r")} ELSE 0 END AS earlier`

/** What was recorded about the run: faults of nodes, the history of its phases and its progress. */
const recordColumns = `
  coalesce((SELECT json_agg(json_build_object('node', f.node, 'code', f.code, 'at', (extract(epoch FROM f.at) * 1000)::bigint) ORDER BY f.at, f.node)
    -- Faults of a reused engine are recorded for the run that it was tried for.
    FROM node_faults f WHERE f.org_id = d.org_id AND f.deployment_id = coalesce((SELECT maker.id FROM deployments maker
      WHERE maker.org_id = d.org_id AND maker.revision_id = d.revision_id ORDER BY maker.created_at, maker.id LIMIT 1), d.id)), '[]') AS "nodeFaults",
  (SELECT json_agg(json_build_object('phase', p.phase, 'at', (extract(epoch FROM p.at) * 1000)::bigint, 'reason', p.reason) ORDER BY p.seq)
    FROM deployment_phases p WHERE p.org_id = d.org_id AND p.deployment_id = d.id) AS history,
  (SELECT json_build_object('phase', g.phase, 'message', g.message, 'queue', g.queue, 'download', g.download,
      'at', (extract(epoch FROM g.updated_at) * 1000)::bigint)
    FROM deployment_progress g WHERE g.org_id = d.org_id AND g.deployment_id = d.id) AS progress`

/** The run with its model, organization and revision, the run that takes over its GPUs, and its applied object. */
const joinedTables = `
  deployments d
  JOIN models m ON m.org_id = d.org_id AND m.id = d.model_id
  JOIN organizations o ON o.id = d.org_id
  LEFT JOIN revisions r ON r.org_id = d.org_id AND r.id = d.revision_id
  LEFT JOIN LATERAL (
    SELECT n.id FROM deployments n
    WHERE n.org_id = d.org_id AND n.model_id = d.model_id AND n.replaces AND n.ended_at IS NULL AND n.id <> d.id
      AND d.phase = 'activated' AND r.status = 'active'
    ORDER BY n.created_at, n.id LIMIT 1
  ) taker ON true
  LEFT JOIN applied_resources a ON a.org_id = d.org_id AND a.deployment_id = d.id`

/** Reads the whole run in one statement, hence from one snapshot. */
export const observeRun = (sql: PgClient.PgClient): ((id: DeploymentId) => Effect.Effect<Option.Option<Run>>) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.Struct({ id: DeploymentId, since: Schema.Finite }),
    Result: RunRow,
    execute: ({ id, since }) => sql`
      SELECT d.id, d.org_id AS "orgId", o.slug AS "orgSlug", d.model_id AS "modelId", ${sql.literal(callableName)} AS model, d.phase,
        d.phase_since AS "phaseSince", d.requeues,
        CASE WHEN d.failure_code IS NOT NULL THEN json_build_object('code', d.failure_code, 'text', d.failure_text) END AS failure,
        json_strip_nulls(json_build_object('kind', 'model_hub', 'repo', m.hf_repo, 'ref', d.ref)) AS source,
        d.serving AS "servingRequest", d.kept_choices AS "keptChoices", d.serve, d.started_by_user_id AS "startedBy", d.created_at AS "createdAt", d.traceparent, d.ended_at AS "endedAt",
        ${sql.literal(revisionColumn)},
        coalesce(d.placements, '[]'::jsonb) AS placements, m.active_revision_id AS "activeRevisionId", m.deleted_at IS NOT NULL AS "modelDeleted",
        m.status = 'disabled' AS "modelDisabled", m.replicas, m.engines,
        CASE WHEN m.max_replicas IS NOT NULL THEN json_build_object('minReplicas', m.min_replicas, 'maxReplicas', m.max_replicas, 'target', m.scale_target) END AS scaling,
        o.gpu_limit AS "gpuLimit", o.spend_limited AS "spendLimited",
        o.billing_suspended_at AS "billingSuspendedAt",
        ${sql.literal(relatedColumns)},
        ${sql.literal(moveColumns)},
        d.replaces, taker.id AS "replacedBy",
        (SELECT json_build_object('run', maker.id, 'commit', s.hf_revision, 'hostClass', s.settings ->> 'host_class', 'gpus', s.gpu_count, 'differs', ${differs(sql, "s")},
            'replicas', (SELECT count(*)::int FROM endpoints e WHERE e.org_id = s.org_id AND e.revision_id = s.id AND e.reachable_at IS NOT NULL),
            'earlier', ${sql.literal(earlierEngines("s"))})
          FROM revisions s JOIN deployments maker ON maker.org_id = s.org_id AND maker.revision_id = s.id
          WHERE s.org_id = d.org_id AND s.id = m.active_revision_id AND s.id IS DISTINCT FROM d.revision_id
          ORDER BY maker.created_at, maker.id LIMIT 1) AS predecessor,
        CASE WHEN d.phase = 'activated' AND r.status = 'active' THEN
          (SELECT shown.deployment_id FROM applied_resources shown
            WHERE shown.org_id = d.org_id AND shown.model_id = d.model_id AND shown.deployment_id <> d.id LIMIT 1) END AS "shownBy",
        CASE WHEN d.phase IN (${sql.literal(unplacedPhases)}) THEN
          coalesce((SELECT json_agg(candidate) FROM (
            SELECT c.id AS run, s.gpu_count AS gpus, (extract(epoch FROM c.ended_at) * 1000)::bigint AS "endedAt", (s.settings ->> 'hold_seconds')::int AS "holdSeconds"
            FROM deployments c JOIN revisions s ON s.org_id = c.org_id AND s.id = c.revision_id
            WHERE c.org_id = d.org_id AND c.model_id = d.model_id AND c.phase = 'activated' AND NOT c.serve AND s.status = 'draft'
            ORDER BY c.created_at DESC, c.id DESC LIMIT 8) candidate), '[]')
          ELSE '[]' END AS candidates,
        (SELECT u.used_at FROM revision_uses u WHERE u.org_id = d.org_id AND u.revision_id = d.revision_id) AS "lastUsedAt",
        -- Requests of all organizations, because the model may be published.
        CASE WHEN d.phase = 'activated' AND (r.status = 'superseded' OR m.deleted_at IS NOT NULL OR m.status = 'disabled' OR taker.id IS NOT NULL
            OR jsonb_exists(r.settings, 'hold_seconds') OR o.prepaid OR o.billing_suspended_at IS NOT NULL) THEN
          (SELECT count(*)::int FROM requests q WHERE q.state = 'running' AND q.revision_id = d.revision_id AND q.created_at > ${new Date(since)})
          ELSE 0 END AS "inFlight",
        CASE WHEN d.applied_name IS NOT NULL THEN json_build_object('namespace', d.applied_namespace, 'name', d.applied_name, 'current',
          CASE WHEN a.uid IS NOT NULL THEN json_strip_nulls(json_build_object('uid', a.uid, 'generation', a.generation, 'namesModel', a.names_model, 'replicas', a.replicas, 'scaling', a.scaling)) END) END AS applied,
        CASE WHEN d.phase IN (${sql.literal(weightPhases)}) OR d.placements IS NOT NULL THEN
          coalesce((SELECT json_agg(json_build_object('store', w.store, 'manifest', w.manifest_sha256, 'verifiedBy', w.verified_by,
              'verifiedAt', (extract(epoch FROM w.verified_at) * 1000)::bigint))
            FROM stored_weights w WHERE w.repo = r.hf_repo AND w.commit = r.hf_revision), '[]')
          ELSE '[]' END AS "storedWeights",
        ${sql.literal(recordColumns)}
      FROM ${sql.literal(joinedTables)}
      WHERE d.id = ${id}`
  })
  return Effect.fn("Runs.observe")(function* (id) {
    const now = yield* Clock.currentTimeMillis
    return yield* Effect.orDie(find({ id, since: now - inFlightMillis }))
  })
}
