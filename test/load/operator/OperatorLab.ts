import { existsSync } from "node:fs"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { Ids, scopes } from "@seatrial/domain"
import { SampleHub } from "@seatrial/local"
import { Deployments } from "@seatrial/store"
import { Context, Effect, Layer } from "effect"
import { startEngine } from "../../faults/StandInEngine.ts"
import type { Lab } from "../Lab.ts"
import { BenchError, profiling, startProgram } from "../Program.ts"
import { startKwokCluster } from "./KwokCluster.ts"

/** As in the chart. */
export const operatorHeap = "--max-semi-space-size=16 --max-old-space-size=512"
const operatorFile = join(import.meta.dirname, "main.ts")

/** Repeats until the value holds. */
export const until = <A, E>(what: string, look: Effect.Effect<A, E>, holds: (seen: A) => boolean, pause: number, minutes = 30) =>
  Effect.gen(function* () {
    const end = Date.now() + minutes * 60_000
    for (;;) {
      const value = yield* look
      if (holds(value)) return value
      if (Date.now() > end) return yield* new BenchError({ message: `${what}: not after ${minutes} minutes. Seen last: ${JSON.stringify(value)}` })
      yield* Effect.sleep(pause)
    }
  })

/**
 * A real control plane with nodes of kwok, a sample hub, and one fake engine for all models, in which operators can be started. `engines`: how many a
 * model has at most, up to ten. `controllers`: see `startKwokCluster`.
 */
export const openOperatorLab = Effect.fnUntraced(function* (lab: Lab, gpus: number, engines = 1, controllers?: string) {
  if (!existsSync(join(import.meta.dirname, "../../../tools/bin/.built-plane"))) {
    return yield* new BenchError({ message: "There is no control plane in tools/bin: build it first with tools/build.sh." })
  }
  const { orgId, orgSlug, sql, userId } = lab
  const hub = Context.get(yield* Layer.build(SampleHub.layer({ port: 0 })), SampleHub)
  const cluster = yield* startKwokCluster(gpus, controllers)
  const startStandIn = (number: number) =>
    Effect.acquireRelease(
      Effect.promise(() => startEngine(`${cluster.engineAddresses}${number}`, 8_000, () => false)),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
  yield* Effect.forEach(Array.from({ length: engines }).keys(), startStandIn, { discard: true })
  const services = yield* Layer.build(Deployments.layerSql.pipe(Layer.provide([Layer.succeed(PgClient.PgClient, sql), Ids.layer])))
  const deployments = Context.get(services, Deployments)
  const caller = { keyId: lab.keyId, orgId, orgSlug, userId, scopes: new Set(scopes), firstPurchase: true, spendLimited: false }
  const noneFailed = (phases: ReadonlyMap<string, number>) =>
    phases.has("failed")
      ? Effect.flatMap(sql`SELECT failure_code, failure_text FROM deployments WHERE phase = 'failed' LIMIT 3`, (rows) =>
          Effect.fail(new BenchError({ message: `Runs failed: ${JSON.stringify(rows)}` }))
        )
      : Effect.void
  return {
    cluster,
    /** `settings`: further settings of the operator. */
    startOperator: (settings: Readonly<Record<string, string>> = {}) =>
      startProgram({
        name: "Seatrial's operator",
        file: operatorFile,
        readyPath: "/readyz",
        environment: (port) => ({
          DATABASE_URL: lab.databaseUrl,
          ...cluster.operator,
          HF_ENDPOINT: hub.address,
          OPERATOR_HOST: "127.0.0.1",
          OPERATOR_PORT: String(port),
          OPERATOR_NAMESPACE: cluster.namespace,
          SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64"),
          NODE_OPTIONS: `${operatorHeap} ${profiling}`,
          ...settings
        })
      }),
    /** Replaces the gateways: reports each new endpoint as reachable. Never ends. */
    reachEndpoints: Effect.forever(
      Effect.andThen(
        sql`
          WITH reached AS (UPDATE endpoints SET reachable_at = now() WHERE reachable_at IS NULL RETURNING deployment_id)
          SELECT pg_notify('deployments', deployment_id) FROM reached`,
        Effect.sleep("100 millis")
      )
    ),
    create: (number: number) =>
      deployments.create({
        caller,
        idempotencyKey: `scale-${number}`,
        inputHash: "a".repeat(64),
        target: { _tag: "NewModel", source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }, slug: `scale-${number}` },
        serving: {},
        serve: true
      }),
    /** The number of ended runs by phase. Fails if one failed. */
    ended: sql<{ readonly phase: string; readonly runs: number }>`
      SELECT phase, count(*)::int AS runs FROM deployments WHERE ended_at IS NOT NULL GROUP BY phase`.pipe(
      Effect.map((rows): ReadonlyMap<string, number> => new Map(rows.map(({ phase, runs }) => [phase, runs]))),
      Effect.tap(noneFailed)
    )
  }
})
