import { earliestCapabilities, ModelId, OrgId, RevisionId, zeroPrices } from "@seatrial/domain"
import type { Route } from "@seatrial/store"
import { Schema } from "effect"
import type { EngineState } from "../../src/routing/EngineState.ts"
import { ModelPool } from "../../src/routing/ModelPool.ts"

const id = (prefix: string, digit: number) => `${prefix}_${"0".repeat(25)}${digit}`

const route: Route = {
  orgId: Schema.decodeSync(OrgId)(id("org", 1)),
  modelId: Schema.decodeSync(ModelId)(id("mdl", 1)),
  model: "acme/tiny",
  revisionId: Schema.decodeSync(RevisionId)(id("rev", 1)),
  runtime: "reference",
  engineVersion: "reference-1",
  hfRevision: "c".repeat(40),
  maxModelLen: 2_048,
  prices: zeroPrices,
  endpoints: [],
  mayIdle: true,
  isPublic: false,
  adapted: false,
  capabilities: earliestCapabilities,
  concurrency: null,
  startSeconds: null,
  knowsDeveloper: false,
  sampling: null
}

/** The model's second revision. */
export const laterRevision = Schema.decodeSync(RevisionId)(id("rev", 2))

export const endpointsOf = (names: ReadonlyArray<string>) => names.map((name) => ({ url: `http://${name}:8000`, pod: name }))

/** A pool of engines by name, with a clock that the test sets. An engine may have `concurrency` requests plus four. */
export const makePool = (names: ReadonlyArray<string>, concurrency: number | null = null) => {
  const own: Route = { ...route, concurrency, endpoints: endpointsOf(names) }
  const world = {
    now: 0,
    /** Whether the model was deleted. */
    gone: false,
    route: own,
    /** Changes the route. */
    serve: (others: ReadonlyArray<string>, over: Partial<Route> = {}) => {
      world.route = { ...world.route, ...over, endpoints: endpointsOf(others) }
      pool.dispatch()
    }
  }
  const pool = new ModelPool(world.route, { unmeasured: 256, now: () => world.now, current: () => (world.gone ? undefined : world.route) })
  return { pool, world }
}

export const nameOf = ({ endpoint }: EngineState): string => endpoint.pod

/** A waiting request, and the engine that it got. */
export const waiting = (pool: ModelPool, org: string, key: number | null = null, sequences = 1) => {
  const got: { engine: EngineState | undefined; gone: boolean } = { engine: undefined, gone: false }
  const waiter = {
    orgId: org,
    key,
    streamed: true,
    sequences,
    give: (engine: EngineState) => {
      got.engine = engine
    },
    gone: () => {
      pool.queue.remove(org, waiter)
      got.gone = true
    }
  }
  pool.queue.add(org, waiter)
  return got
}
