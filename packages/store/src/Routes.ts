import { PgClient } from "@effect/sql-pg"
import type { ModelCapabilities, ModelId, OrgId, Prices, RevisionId, Runtime, SamplingDefaults } from "@seatrial/domain"
import { Context, Effect, Layer, Option, type Scope, Stream } from "effect"
import type { FailedStarts } from "./GpuHolds.ts"
import { AbsentNames } from "./routes/AbsentNames.ts"
import { markReachable, placedEngine } from "./routes/engines.ts"
import { keepSnapshot } from "./routes/keepSnapshot.ts"
import { findName, makeNameLookUps } from "./routes/nameLookUps.ts"
import { recordUse } from "./routes/recordUse.ts"
import { type EndpointLoad, reportLoads } from "./routes/reportLoads.ts"

/** A pod that serves a revision. */
export interface Endpoint {
  /** `http://address:port`. */
  readonly url: string
  readonly pod: string
}

/** A pod that gets requests from now on. */
export interface PublishedPod extends Endpoint {
  /** Absent if it is not known. */
  readonly podUid?: string
}

/** A pod to which requests for a model go. */
export interface RoutedEndpoint extends Endpoint {
  /** The UID of the pod. Records of requests name the engine by it. Absent if it is not known. */
  readonly engine?: string
  /** Set if the pod serves an earlier revision of the model, while the model moves to the serving revision. */
  readonly retiring?: Pick<Route, "engineVersion" | "hfRevision" | "revisionId">
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
  readonly endpoints: ReadonlyArray<RoutedEndpoint>
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
    /**
     * Reports the requests that run or wait at this gateway until the scope closes. `current` is called at intervals.
     */
    readonly reportLoads: (options: {
      readonly current: () => ReadonlyArray<EndpointLoad>
      readonly intervalMillis: number
    }) => Effect.Effect<void, never, Scope.Scope>
    /** The engine of the model that has assigned GPUs, ready or not; null if there is none. */
    readonly placedEngine: (route: Pick<Route, "modelId" | "orgId" | "revisionId">) => Effect.Effect<PlacedEngine | null>
    /** Records that this gateway got an answer from the endpoint. */
    readonly markReachable: (endpoint: UnprovenEndpoint) => Effect.Effect<void>
  }
>()("seatrial/Routes") {
  static readonly layerSql = Layer.effect(
    Routes,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient

      const absent = new AbsentNames()
      const copy = yield* keepSnapshot(sql, absent)
      const known = (orgId: OrgId, model: string) => copy.current.ofOrganization.get(orgId)?.get(model) ?? copy.current.ofAll.get(model)
      const lookUp = yield* makeNameLookUps({
        absent,
        query: (orgId, model) => Effect.map(findName(sql, orgId, model), ([row]) => row),
        isNews: (orgId, model, stored) => {
          const route = known(orgId, model)
          return stored !== undefined && (route === undefined || (stored.ready && route.endpoints.length === 0))
        },
        reload: copy.reloadShared
      })

      return Routes.of({
        find: Effect.fnUntraced(function* (orgId, model) {
          const route = known(orgId, model)
          if (route !== undefined && route.endpoints.length > 0) return Option.some(route)
          yield* lookUp(orgId, model)
          return Option.fromUndefinedOr(known(orgId, model))
        }),
        use: recordUse(sql),
        reportLoads: (options) => reportLoads(sql, crypto.randomUUID(), options),
        known,
        ofModel: (id) => copy.current.ofModel.get(id),
        changes: Stream.map(Stream.fromPubSub(copy.snapshots), () => undefined),
        unproven: Stream.map(Stream.fromPubSub(copy.snapshots), ({ unproven }) => unproven),
        placedEngine: placedEngine(sql),
        markReachable: markReachable(sql)
      })
    })
  )
}
