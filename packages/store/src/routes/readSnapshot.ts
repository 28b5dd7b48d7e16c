import type { PgClient } from "@effect/sql-pg"
import {
  earliestCapabilities,
  type ModelCapabilities,
  ModelId,
  OrgId,
  Prices,
  RevisionId,
  Runtime,
  SamplingDefaults,
  storedCapabilities,
  zeroPrices
} from "@seatrial/domain"
import { Effect, Option, Schema } from "effect"
import { callableName } from "../columns.ts"
import type { Route, UnprovenEndpoint } from "../Routes.ts"
import { readableRows } from "../readableRows.ts"
import { interchangeable, sampling } from "./interchangeable.ts"
import { measuredConcurrency, measuredStart } from "./measuredFigures.ts"

const RetiringRevision = Schema.Struct({ revisionId: RevisionId, hfRevision: Schema.String, engineVersion: Schema.String })
const RoutedPod = Schema.Struct({
  url: Schema.String,
  pod: Schema.String,
  engine: Schema.optionalKey(Schema.String),
  retiring: Schema.optionalKey(RetiringRevision)
})
const RouteRow = Schema.Struct({
  orgId: OrgId,
  modelId: ModelId,
  model: Schema.String,
  visibility: Schema.Literals(["public", "private"]),
  revisionId: RevisionId,
  runtime: Runtime,
  engineVersion: Schema.String,
  hfRevision: Schema.String,
  maxModelLen: Schema.Int,
  prices: Prices,
  endpoints: Schema.Array(RoutedPod),
  mayIdle: Schema.Boolean,
  adapted: Schema.Boolean,
  concurrency: Schema.NullOr(Schema.Int),
  startSeconds: Schema.NullOr(Schema.Finite),
  /** JSON. */
  capabilities: Schema.NullOr(Schema.String),
  knowsDeveloper: Schema.Boolean,
  sampling: Schema.NullOr(SamplingDefaults)
})
const UnprovenRow = Schema.Struct({ orgId: OrgId, url: Schema.String, pod: Schema.String, revisionId: RevisionId, runtime: Runtime })

const readableRoutes = readableRows(RouteRow, "A route")
const readableEndpoints = readableRows(UnprovenRow, "An endpoint")

/** The result of one read of all routes. */
export interface Snapshot {
  readonly ofOrganization: ReadonlyMap<string, ReadonlyMap<string, Route>>
  readonly ofAll: ReadonlyMap<string, Route>
  readonly ofModel: ReadonlyMap<ModelId, Route>
  readonly unproven: ReadonlyArray<UnprovenEndpoint>
}

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Decodes stored capabilities. Each distinct text is decoded once while any route has it. */
const makeReader = () => {
  let known = new Map<string, ModelCapabilities>()
  return (rows: ReadonlyArray<typeof RouteRow.Type>): ((text: string | null) => ModelCapabilities) => {
    const read = new Map<string, ModelCapabilities>()
    for (const { capabilities } of rows) {
      if (capabilities === null || read.has(capabilities)) continue
      const stored = known.get(capabilities) ?? storedCapabilities(Option.getOrNull(parse(capabilities)), () => earliestCapabilities)
      read.set(capabilities, stored)
    }
    known = read
    return (text) => (text === null ? undefined : read.get(text)) ?? earliestCapabilities
  }
}

const snapshotOf = (
  rows: ReadonlyArray<typeof RouteRow.Type>,
  capabilitiesOf: (text: string | null) => ModelCapabilities,
  unproven: ReadonlyArray<UnprovenEndpoint>
): Snapshot => {
  const ofOrganization = new Map<string, Map<string, Route>>()
  const ofAll = new Map<string, Route>()
  const ofModel = new Map<ModelId, Route>()
  for (const { capabilities, visibility, ...facts } of rows) {
    const route = { ...facts, isPublic: visibility === "public", capabilities: capabilitiesOf(capabilities) }
    ofModel.set(route.modelId, route)
    const own = ofOrganization.get(route.orgId) ?? new Map<string, Route>()
    // An organization pays for its own models by GPU time, including published ones.
    ofOrganization.set(route.orgId, own.set(route.model, { ...route, prices: zeroPrices }))
    if (visibility === "public") ofAll.set(route.model, route)
  }
  return { ofOrganization, ofAll, ofModel, unproven }
}

/** The models with engines of an earlier revision. Postgres reads them once for all routes. */
const movingModels = `
  SELECT v.model_id FROM endpoints e JOIN revisions v ON v.org_id = e.org_id AND v.id = e.revision_id
  WHERE v.status = 'superseded' AND e.reachable_at IS NOT NULL`

/** Reads all routes, and the endpoints that no gateway has reached yet. */
export const makeReadSnapshot = (sql: PgClient.PgClient) => {
  const findRoutes = sql`
      SELECT m.org_id AS "orgId", m.id AS "modelId", ${sql.literal(callableName)} AS model, m.visibility, r.id AS "revisionId", r.runtime,
        r.engine_version AS "engineVersion", r.hf_revision AS "hfRevision", r.max_model_len AS "maxModelLen",
        json_build_object(
          'input_micros_per_mtok', r.input_micros_per_mtok::text,
          'output_micros_per_mtok', r.output_micros_per_mtok::text,
          'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text,
          'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text) AS prices,
        coalesce((SELECT json_agg(json_strip_nulls(json_build_object('url', e.url, 'pod', e.pod, 'engine', e.engine)) ORDER BY e.url)
          FROM endpoints e WHERE e.org_id = r.org_id AND e.revision_id = r.id AND e.reachable_at IS NOT NULL), '[]')::jsonb
        || CASE WHEN m.id IN (${sql.literal(movingModels)}) THEN coalesce((
          SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('url', e.url, 'pod', e.pod, 'engine', e.engine,
            'retiring', jsonb_build_object('revisionId', s.id, 'hfRevision', s.hf_revision, 'engineVersion', s.engine_version))) ORDER BY e.url)
          FROM revisions s JOIN endpoints e ON e.org_id = s.org_id AND e.revision_id = s.id
          WHERE s.org_id = r.org_id AND s.model_id = m.id AND e.reachable_at IS NOT NULL AND ${sql.literal(interchangeable("r", "s"))}), '[]') ELSE '[]' END AS endpoints,
        jsonb_exists(r.settings, 'hold_seconds') AS "mayIdle", r.base_hf_revision IS NOT NULL AS adapted,
        ${sql.literal(measuredConcurrency)} AS concurrency, ${sql.literal(measuredStart)} AS "startSeconds",
        r.capabilities::text AS capabilities, r.knows_developer AS "knowsDeveloper",
        ${sql.literal(sampling("r"))} AS sampling
      FROM models m
      JOIN organizations o ON o.id = m.org_id
      JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id
      WHERE m.active_revision_id IS NOT NULL AND m.status = 'active' AND m.deleted_at IS NULL AND o.status = 'active'`
  const findUnproven = sql`
      SELECT e.org_id AS "orgId", e.url, e.pod, e.revision_id AS "revisionId", r.runtime FROM endpoints e JOIN revisions r ON r.org_id = e.org_id AND r.id = e.revision_id
      WHERE e.reachable_at IS NULL ORDER BY e.published_at, e.url`
  const readCapabilities = makeReader()
  return Effect.gen(function* () {
    const routes = yield* readableRoutes(yield* findRoutes)
    return snapshotOf(routes, readCapabilities(routes), yield* readableEndpoints(yield* findUnproven))
  })
}
