import { randomUUID } from "node:crypto"
import { PgClient } from "@effect/sql-pg"
import { KubeClient, KubeConnection } from "@seatrial/kube"
import { Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { LocalCluster } from "../../src/cluster/LocalCluster.ts"

const layerDatabase = Layer.unwrap(
  Effect.gen(function* () {
    const base = inject("postgres")
    const name = `node_${randomUUID().replaceAll("-", "")}`
    yield* Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* sql`CREATE DATABASE ${sql(name)}`
    }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(`${base}/postgres`), maxConnections: 1 })))
    return PgClient.layer({ url: Redacted.make(`${base}/${name}`), maxConnections: 4 })
  })
)

const layerConnection = Layer.effect(
  KubeConnection,
  Effect.map(LocalCluster, ({ address, token }) =>
    KubeConnection.of({
      server: new URL(address),
      namespace: "default",
      credentials: Effect.succeed({ headers: { authorization: `Bearer ${token}` }, tls: {}, proxy: undefined }),
      forget: Effect.void
    })
  )
)

/** A separate local cluster in a separate database, and an HTTP client for it. */
export const layerCluster = KubeClient.layer.pipe(
  Layer.provideMerge(layerConnection),
  Layer.provideMerge(LocalCluster.layer({ port: 0 })),
  Layer.provide(layerDatabase),
  Layer.orDie
)
