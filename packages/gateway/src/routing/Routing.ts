import type { ModelId } from "@seatrial/domain"
import { type Route, Routes } from "@seatrial/store"
import { Context, Effect, Layer, Stream } from "effect"
import { EngineClient } from "../EngineClient.ts"
import { GatewayConfig } from "../GatewayConfig.ts"
import { routingMetrics } from "../observability/RoutingMetrics.ts"
import { ModelPool } from "./ModelPool.ts"
import { RoutedRequest, type RoutingDependencies, type RoutingRequest } from "./RoutedRequest.ts"
import { watchEngines } from "./watchEngines.ts"

/** Milliseconds between two reports of the load, which the autoscaler reads. */
const reportIntervalMillis = 1_000

/** Decides which engine processes a request, and when. */
export class Routing extends Context.Service<
  Routing,
  {
    /**
     * Starts routing a request. If the route changes before the request gets an engine, the new route applies. The
     * caller must call `leave` on the result.
     */
    readonly open: (route: Route, request: RoutingRequest) => RoutedRequest
  }
>()("seatrial/Routing") {
  static readonly layer = Layer.effect(
    Routing,
    Effect.gen(function* () {
      const { routing: settings } = yield* GatewayConfig
      const engine = yield* EngineClient
      const routes = yield* Routes
      const now = () => performance.now()
      const pools = new Map<ModelId, ModelPool>()
      routingMetrics.pools = () => [...pools.values()].map((pool) => pool.observe())
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const pool of pools.values()) pool.close()
        })
      )
      const dependencies: RoutingDependencies = {
        settings,
        known: routes.known,
        now,
        poolOf: (route) => {
          const known = pools.get(route.modelId)
          if (known !== undefined) return known
          const pool = new ModelPool(route, { unmeasured: settings.engineConcurrency, now, current: routes.ofModel })
          pools.set(route.modelId, pool)
          return pool
        }
      }
      yield* routes.changes.pipe(
        Stream.runForEach(() =>
          Effect.sync(() => {
            for (const pool of pools.values()) pool.dispatch()
          })
        ),
        Effect.forkScoped
      )
      yield* routes.reportLoads({ current: () => [...pools.values()].flatMap((pool) => pool.loads()), intervalMillis: reportIntervalMillis })
      yield* watchEngines({ engine, now, pools, settings, use: routes.use, placedEngine: routes.placedEngine })

      return Routing.of({
        open: (route, request) => new RoutedRequest(dependencies, route, request)
      })
    })
  )
}
