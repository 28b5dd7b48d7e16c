import { Effect, Fiber } from "effect"
import { httpRequest } from "../compare.ts"
import { type Figure, figureOf } from "../figures.ts"
import type { Lab } from "../Lab.ts"
import { startLoadGenerator } from "../LoadGenerator.ts"
import type { openOperatorLab } from "../operator/OperatorLab.ts"
import { until } from "../operator/OperatorLab.ts"
import { startGateway } from "../startGateway.ts"

type OperatorLab = Effect.Success<ReturnType<typeof openOperatorLab>>

/** Models, each of which gets one step of load. */
export const steps = 10
/** The trial in the lab finds room for 4 requests in an engine. */
const callers = 12

/**
 * Milliseconds from the first request of a step in load to the decision to have more engines, as the database shows it. The models, the first of the
 * lab, have one engine each. The gateway and the operator are as they ship.
 */
export const decisionTime = Effect.fnUntraced(function* (lab: Lab, { create, ended }: OperatorLab): Effect.fn.Return<Figure, unknown, never> {
  const { sql } = lab
  yield* sql`
    ALTER TABLE models ALTER COLUMN min_replicas SET DEFAULT 1, ALTER COLUMN max_replicas SET DEFAULT 3, ALTER COLUMN scale_target SET DEFAULT 0.8`
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const gateway = yield* startGateway(lab, { name: "Seatrial's gateway", file: "packages/gateway/src/main.ts" })
      const generate = yield* startLoadGenerator()
      yield* Effect.forEach(Array.from({ length: steps }).keys(), create, { discard: true })
      yield* until("the models serve", ended, (phases) => phases.get("activated") === steps, 100)
      const times: Array<number> = []
      for (let step = 0; step < steps; step++) {
        // The gateway reports the load every second, and the operator reads it as often. A load lasts eight of these periods.
        yield* Effect.sleep(1_000 / steps)
        const body = JSON.stringify({ model: `${lab.orgSlug}/scale-${step}`, messages: [{ role: "user", content: "What does the crew do?" }], stream: true })
        const requests = [httpRequest("POST", "/v1/chat/completions", lab.key, body)] as const
        const begun = performance.now()
        const load = yield* Effect.forkScoped(generate({ host: gateway.host, port: gateway.port, requests, connections: callers, warmSeconds: 0, seconds: 8 }))
        const wanted = sql<{ readonly replicas: number }>`SELECT replicas FROM models WHERE org_id = ${lab.orgId} AND slug = ${`scale-${step}`}`
        yield* until(`scale-${step} gets engines`, wanted, ([row]) => (row?.replicas ?? 1) > 1, 10, 1)
        times.push(performance.now() - begun)
        yield* Fiber.join(load)
      }
      yield* sql`
        ALTER TABLE models ALTER COLUMN min_replicas DROP DEFAULT, ALTER COLUMN max_replicas DROP DEFAULT, ALTER COLUMN scale_target DROP DEFAULT`
      // No model is left to the autoscaler, so that nothing changes in the measurements that follow.
      yield* sql`UPDATE models SET min_replicas = NULL, max_replicas = NULL, scale_target = NULL`
      return figureOf(times)
    })
  )
})
