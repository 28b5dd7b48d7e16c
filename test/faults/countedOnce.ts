import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"

/** Holds of pods of one name that overlap. Times of placements in Kubernetes are complete seconds. */
const twice = `
  SELECT one.pod, one.pod_uid, other.pod_uid FROM gpu_holds one JOIN gpu_holds other USING (pod)
  WHERE one.pod_uid <> other.pod_uid AND one.placed_at <= other.placed_at
    AND coalesce(one.released_at, 'infinity') > other.placed_at + interval '1 second'`

/** Moments at which more GPUs of a host class were held than its nodes have. */
const tooMany = (gpus: number) => `
  SELECT at.host_class, at.placed_at, sum(held.gpus) FROM gpu_holds at JOIN gpu_holds held USING (host_class)
  WHERE held.placed_at <= at.placed_at AND coalesce(held.released_at, 'infinity') > at.placed_at + interval '1 second'
  GROUP BY at.pod_uid, at.host_class, at.placed_at HAVING sum(held.gpus) > ${gpus}`

/** Asserts that no GPU was counted twice, since the system began. `gpus`: how many each host class has. */
export const countedOnce = (databaseUrl: string, gpus: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const doubles = [...(yield* sql.unsafe(twice)), ...(yield* sql.unsafe(tooMany(gpus)))]
    assert.deepStrictEqual(doubles, [])
  }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(databaseUrl), maxConnections: 1 })), Effect.orDie)
