import { PgClient } from "@effect/sql-pg"
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
import { Clock, Context, Effect, Layer, Option, PubSub, Schedule, Schema, Semaphore, Stream } from "effect"
import { callableName } from "./columns.ts"
import type { FailedStarts } from "./GpuHolds.ts"
import { listen } from "./listen.ts"
import { readableRows } from "./readableRows.ts"
import { AbsentNames } from "./routes/AbsentNames.ts"
import { measuredConcurrency, measuredStart } from "./routes/measuredFigures.ts"
import { findName, makeNameLookUps } from "./routes/nameLookUps.ts"
import { recordUse } from "./routes/recordUse.ts"

/** A pod that serves a revision. */
export interface Endpoint {
  /** `http://address:port`. */
  readonly url: string
  readonly pod: string
}

/** The destination of requests for a callable model. */
export interface Route {
  readonly orgId: OrgId
  readonly modelId: ModelId
  /** Callable name, `<org slug>/<model slug>`. */
  readonly model: string
  readonly revisionId: RevisionId
  readonly runtime: Runtime
  readonly engineVersion: string
  readonly hfRevision: string
  readonly maxModelLen: number
  readonly prices: Prices
  readonly endpoints: ReadonlyArray<Endpoint>
  /** Whether its engine stops when it is idle. */
  readonly mayIdle: boolean
  /** Whether every organization may call it. */
  readonly isPublic: boolean
  /** Whether it serves an adapter. Its engine uses another name for an adapter than for the base. */
  readonly adapted: boolean
  /** Concurrency that its engine reached when it was measured; null if it was not measured. */
  readonly concurrency: number | null
  /** Measured start time of its engine, seconds; null if unknown. */
  readonly startSeconds: number | null
  /** Stored and verified capabilities of the revision. Routes with equal stored text share one object. */
  readonly capabilities: ModelCapabilities
  /** Whether its chat template supports the role `developer`. */
  readonly knowsDeveloper: boolean
  /** Sampling defaults of its repository, unless its settings disable them; null if unknown. */
  readonly sampling: SamplingDefaults | null
}

/** An engine with assigned GPUs. `failing` is null unless it exits during every start. */
export interface PlacedEngine {
  readonly failing: FailedStarts | null
}

/** An endpoint that no gateway has reached yet. */
export interface UnprovenEndpoint extends Endpoint {
  readonly orgId: OrgId
  readonly revisionId: RevisionId
  readonly runtime: Runtime
}

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
  endpoints: Schema.Array(Schema.Struct({ url: Schema.String, pod: Schema.String })),
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
interface Snapshot {
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

/** The gateway's routes: a copy in memory, kept current by `LISTEN`. */
export class Routes extends Context.Service<
  Routes,
  {
    /**
     * The route of a callable name for this organization, from memory without a query. A name that is unknown or has no
     * engine is looked up in the database once, and again only after routes have changed.
     */
    readonly find: (orgId: OrgId, model: string) => Effect.Effect<Option.Option<Route>>
    /** The route of a callable name for this organization, from memory only. */
    readonly known: (orgId: OrgId, model: string) => Route | undefined
    /** The current route of a model, from memory only: for its engines, not for its prices. */
    readonly ofModel: (id: ModelId) => Route | undefined
    /** Emits after each read of the routes; several changes may share a read. */
    readonly changes: Stream.Stream<void>
    /** All endpoints that no gateway has reached yet: at the start, and after each change of the routes. */
    readonly unproven: Stream.Stream<ReadonlyArray<UnprovenEndpoint>>
    /**
     * Records that a request for the revision begins or ends, so that its engine does not idle, or starts if it is
     * stopped. `woken`: the start was already requested and a request still waits for it. Never fails.
     */
    readonly use: (route: Route, woken?: boolean) => Effect.Effect<void>
    /** The engine of the revision that has assigned GPUs, ready or not; null if there is none. */
    readonly placedEngine: (route: Pick<Route, "orgId" | "revisionId">) => Effect.Effect<PlacedEngine | null>
    /** Records that this gateway got an answer from the endpoint. */
    readonly markReachable: (endpoint: UnprovenEndpoint) => Effect.Effect<void>
  }
>()("seatrial/Routes") {
  static readonly layerSql = Layer.effect(
    Routes,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient

      const findRoutes = sql`
          SELECT m.org_id AS "orgId", m.id AS "modelId", ${sql.literal(callableName)} AS model, m.visibility, r.id AS "revisionId", r.runtime,
            r.engine_version AS "engineVersion", r.hf_revision AS "hfRevision", r.max_model_len AS "maxModelLen",
            json_build_object(
              'input_micros_per_mtok', r.input_micros_per_mtok::text,
              'output_micros_per_mtok', r.output_micros_per_mtok::text,
              'cache_read_micros_per_mtok', r.cache_read_micros_per_mtok::text,
              'cache_write_micros_per_mtok', r.cache_write_micros_per_mtok::text) AS prices,
            coalesce((SELECT json_agg(json_build_object('url', e.url, 'pod', e.pod) ORDER BY e.url)
              FROM endpoints e WHERE e.org_id = r.org_id AND e.revision_id = r.id AND e.reachable_at IS NOT NULL), '[]') AS endpoints,
            jsonb_exists(r.settings, 'hold_seconds') AS "mayIdle", r.base_hf_revision IS NOT NULL AS adapted,
            ${sql.literal(measuredConcurrency)} AS concurrency, ${sql.literal(measuredStart)} AS "startSeconds",
            r.capabilities::text AS capabilities, r.knows_developer AS "knowsDeveloper",
            CASE WHEN r.settings #>> '{engine_flags,sampling_defaults}' = 'openai' THEN '{}' ELSE r.sampling END AS sampling
          FROM models m
          JOIN organizations o ON o.id = m.org_id
          JOIN revisions r ON r.org_id = m.org_id AND r.id = m.active_revision_id
          WHERE m.active_revision_id IS NOT NULL AND m.status = 'active' AND m.deleted_at IS NULL AND o.status = 'active'`
      const findUnproven = sql`
          SELECT e.org_id AS "orgId", e.url, e.pod, e.revision_id AS "revisionId", r.runtime FROM endpoints e JOIN revisions r ON r.org_id = e.org_id AND r.id = e.revision_id
          WHERE e.reachable_at IS NULL ORDER BY e.published_at, e.url`
      const readCapabilities = makeReader()
      const read = Effect.gen(function* () {
        const routes = yield* readableRoutes(yield* findRoutes)
        return snapshotOf(routes, readCapabilities(routes), yield* readableEndpoints(yield* findUnproven))
      })

      let current = yield* Effect.orDie(read)
      const snapshots = yield* PubSub.sliding<Snapshot>({ capacity: 1, replay: 1 })
      yield* PubSub.publish(snapshots, current)
      const reload = Effect.gen(function* () {
        current = yield* read
        yield* PubSub.publish(snapshots, current)
      })
      const absent = new AbsentNames()
      // Serializes reads, so that an earlier read never replaces a later one.
      const turn = yield* Semaphore.make(1)
      // Changes during a read cause one more read.
      yield* listen(sql, "routes").pipe(
        Stream.tap(({ _tag }) => Effect.sync(() => absent.clear(_tag !== "Lost"))),
        Stream.filter(({ _tag }) => _tag !== "Lost"),
        Stream.buffer({ capacity: 1, strategy: "sliding" }),
        Stream.runForEach(() =>
          turn
            .withPermits(1)(reload)
            .pipe(
              Effect.tapError((error) => Effect.logWarning(`Could not read the routes; using the previous ones (${error.message})`)),
              Effect.retry(Schedule.spaced("500 millis")),
              Effect.orDie
            )
        ),
        Effect.forkScoped
      )

      // Requests for a read during a read share the next one, so that at most one is queued.
      let requestedReads = 0
      let served = 0
      const reloadShared = Effect.suspend(() => {
        const own = ++requestedReads
        return turn.withPermits(1)(
          Effect.suspend(() => {
            if (served >= own) return Effect.void
            const all = requestedReads
            const settle = Effect.sync(() => {
              served = all
            })
            // A failed read also counts for all requests that shared it.
            return reload.pipe(
              Effect.tap(() => settle),
              Effect.tapError(() => settle)
            )
          })
        )
      })
      const known = (orgId: OrgId, model: string) => current.ofOrganization.get(orgId)?.get(model) ?? current.ofAll.get(model)
      const lookUp = yield* makeNameLookUps({
        absent,
        query: (orgId, model) => Effect.map(findName(sql, orgId, model), ([row]) => row),
        isNews: (orgId, model, stored) => {
          const route = known(orgId, model)
          return stored !== undefined && (route === undefined || (stored.ready && route.endpoints.length === 0))
        },
        reload: reloadShared
      })

      return Routes.of({
        find: Effect.fnUntraced(function* (orgId, model) {
          const route = known(orgId, model)
          if (route !== undefined && route.endpoints.length > 0) return Option.some(route)
          yield* lookUp(orgId, model)
          return Option.fromUndefinedOr(known(orgId, model))
        }),
        use: recordUse(sql),
        known,
        ofModel: (id) => current.ofModel.get(id),
        changes: Stream.map(Stream.fromPubSub(snapshots), () => undefined),
        unproven: Stream.map(Stream.fromPubSub(snapshots), ({ unproven }) => unproven),
        placedEngine: Effect.fn("Routes.placedEngine")(function* ({ orgId, revisionId }) {
          const [held] = yield* Effect.orDie(sql<{ readonly ends: number | null; readonly next: Date | null }>`
            SELECT h.failed_starts AS ends, h.next_start_at AS next FROM gpu_holds h JOIN deployments d ON d.org_id = h.org_id AND d.id = h.deployment_id
            WHERE h.org_id = ${orgId} AND h.released_at IS NULL AND d.revision_id = ${revisionId} ORDER BY h.failed_starts NULLS FIRST LIMIT 1`)
          if (held === undefined) return null
          return { failing: held.ends === null ? null : { ends: held.ends, nextStartAt: held.next?.getTime() ?? null } }
        }),
        markReachable: Effect.fn("Routes.markReachable")(function* ({ orgId, pod, revisionId, url }) {
          const at = new Date(yield* Clock.currentTimeMillis)
          yield* Effect.orDie(sql`
            WITH reached AS (
              UPDATE endpoints SET reachable_at = ${at}
              WHERE org_id = ${orgId} AND revision_id = ${revisionId} AND url = ${url} AND pod = ${pod} AND reachable_at IS NULL
              RETURNING org_id, deployment_id, revision_id
            ),
            work AS (
              INSERT INTO outbox (org_id, deployment_id, created_at) SELECT org_id, deployment_id, ${at} FROM reached
            )
            SELECT pg_notify('routes', revision_id), pg_notify('deployments', deployment_id) FROM reached`)
        })
      })
    })
  )
}
