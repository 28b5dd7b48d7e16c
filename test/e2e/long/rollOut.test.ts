import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { bodyOf } from "../Caller.ts"
import { readyEngines } from "../engines.ts"
import { eventually } from "../eventually.ts"
import { keepCalling } from "../keepCalling.ts"
import { Served } from "../Served.ts"

const Progress = Schema.Struct({ message: Schema.String })
const replicas = 3

/** Reads the numbers of engines that gateways have reached, several times a second, until the result is run. */
const keepCounting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const counts: Array<number> = []
  yield* Effect.forkScoped(
    sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM endpoints WHERE reachable_at IS NOT NULL`.pipe(
      Effect.map(([row]) => counts.push(row?.count ?? 0)),
      Effect.andThen(Effect.sleep("100 millis")),
      Effect.forever
    )
  )
  return counts
})

it.live(
  "a model with three engines moves to a new revision engine by engine: both answer, no request fails, and three always serve",
  () =>
    Effect.gen(function* () {
      const { caller, commit, kube, model, operation, system } = yield* Served
      yield* caller.call("PUT", `/v1/models/${operation.model_id}/scaling`, { replicas })
      const messageOf = (id: string) => Effect.map(caller.call("GET", `/v1/deployments/${id}/progress`), (answer) => bodyOf(Progress, answer).message)
      const serves = `Serves. ${replicas} of ${replicas} engines serve.`
      yield* eventually("all engines serve", messageOf(operation.id), (text) => text === serves)

      const layerProduct = PgClient.layer({ url: Redacted.make(system.state.database_url), maxConnections: 1 })
      yield* Effect.gen(function* () {
        const stop = yield* keepCalling(caller, model, 4)
        const counts = yield* keepCounting
        const next = yield* caller.finished((yield* caller.deploy({ model_id: operation.model_id, ref: "v1" })).id)
        assert.deepStrictEqual([next.status, next.failure_detail], ["activated", null])
        const activatedAt = counts.length
        yield* eventually("all engines of the new revision serve", messageOf(next.id), (text) => text === serves)
        yield* eventually("the earlier engines are gone", readyEngines(kube, operation.id), (pods) => pods.length === 0)
        const answered = yield* stop

        const during = counts.slice(activatedAt)
        assert.isAtLeast(Math.min(...during), replicas)
        assert.isAtMost(Math.max(...during), replicas + 1)
        const sql = yield* SqlClient.SqlClient
        const receipts = yield* sql<{ readonly id: string; readonly revision: string }>`SELECT request_id AS id, hf_revision AS revision FROM receipts`
        const revisionOf = new Map(receipts.map(({ id, revision }) => [id, revision]))
        const revisions = answered.map((id) => revisionOf.get(id))
        assert.deepStrictEqual([revisions.at(0), revisions.at(-1)], [commit, next.hf_revision])
        const firstNew = revisions.indexOf(next.hf_revision ?? "")
        assert.include(revisions.slice(firstNew), commit)
      }).pipe(Effect.provide(layerProduct))
    }).pipe(Effect.provide(Served.layer), Effect.scoped),
  600_000
)
