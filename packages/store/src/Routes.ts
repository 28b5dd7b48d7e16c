import type { ModelId, OrgId, Prices, RevisionId, Runtime } from "@seatrial/domain"
import { Context, type Effect, type Option, type Stream } from "effect"

/** A pod that serves a revision. */
export interface Endpoint {
  /** `http://address:port`. */
  readonly url: string
  readonly pod: string
}

/** Where requests for a callable model go. */
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
}

/** An endpoint whose reachability from the gateways is not known yet. */
export interface UnprovenEndpoint extends Endpoint {
  readonly revisionId: RevisionId
  readonly runtime: Runtime
}

/** The gateway's side of routing: a copy of the routes in memory, kept up to date by `LISTEN`. */
export class Routes extends Context.Service<
  Routes,
  {
    /** The route of a callable name, as this organisation sees it. In memory: no query. */
    readonly find: (orgId: OrgId, model: string) => Effect.Effect<Option.Option<Route>>
    readonly list: (orgId: OrgId) => Effect.Effect<ReadonlyArray<Route>>
    /** Endpoints that no gateway has reached so far; each again when routes change. */
    readonly unproven: Stream.Stream<UnprovenEndpoint>
    /** This gateway got an answer from the endpoint. */
    readonly markReachable: (revisionId: RevisionId, url: string) => Effect.Effect<void>
  }
>()("seatrial/Routes") {}
