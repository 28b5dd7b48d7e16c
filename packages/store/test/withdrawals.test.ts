import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { Deployments, Runs, Sentinels } from "../src/index.ts"
import { hold, waiting } from "./locks.ts"
import { layerSentinels, makeEngine } from "./sentinelEngine.ts"
import { newModel } from "./support/index.ts"

const url = "http://10.0.0.1:8000"

/** Whether each alarm of an engine with that uid says that the engine was withdrawn. */
const withdrawn = Effect.fnUntraced(function* (podUid: string) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ readonly at: Date | null }>`SELECT withdrawn_at AS at FROM suspicions WHERE pod_uid = ${podUid} ORDER BY created_at`
  return rows.map(({ at }) => at !== null)
})

/** The lock lets neither an alarm nor a withdrawal be written. */
const lockSuspicions = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  return yield* hold(sql`LOCK TABLE suspicions IN SHARE MODE`, true)
})

layer(layerSentinels, { excludeTestServices: true })("an engine with an alarm counts as withdrawn", (it) => {
  it.effect("if it had lost its requests before the alarm was recorded", () =>
    Effect.gen(function* () {
      const [sentinels, runs] = [yield* Sentinels, yield* Runs]
      const { id, orgId, row, suspicion } = yield* makeEngine("before")
      yield* runs.publishEndpoints(id, orgId, [{ url, pod: `${row.pod}-other` }])
      yield* sentinels.raise(suspicion)
      assert.deepStrictEqual(yield* withdrawn(row.podUid), [true])
    })
  )

  it.effect("if another pod gets its address", () =>
    Effect.gen(function* () {
      const [sentinels, runs] = [yield* Sentinels, yield* Runs]
      const { id, orgId, row, suspicion } = yield* makeEngine("address")
      yield* runs.publishEndpoints(id, orgId, [{ url, pod: row.pod }])
      yield* sentinels.raise(suspicion)
      yield* runs.publishEndpoints(id, orgId, [{ url: `${url}1`, pod: row.pod }])
      assert.deepStrictEqual(yield* withdrawn(row.podUid), [false])
      yield* runs.publishEndpoints(id, orgId, [{ url: `${url}1`, pod: `${row.pod}-other` }])
      assert.deepStrictEqual(yield* withdrawn(row.podUid), [true])
    })
  )

  it.effect("if it loses its requests while the alarm is recorded, whichever comes first", () =>
    Effect.gen(function* () {
      const [sentinels, runs] = [yield* Sentinels, yield* Runs]
      for (const first of ["alarm", "withdrawal"] as const) {
        const { id, orgId, row, suspicion } = yield* makeEngine(`during-${first}`)
        yield* runs.publishEndpoints(id, orgId, [{ url, pod: row.pod }])
        const release = yield* lockSuspicions
        const steps = { alarm: sentinels.raise(suspicion), withdrawal: runs.publishEndpoints(id, orgId, []) }
        const one = yield* Effect.forkChild(steps[first])
        yield* waiting(1)
        const other = yield* Effect.forkChild(steps[first === "alarm" ? "withdrawal" : "alarm"])
        yield* waiting(2)
        yield* release
        yield* Effect.all([Fiber.join(one), Fiber.join(other)])
        assert.deepStrictEqual(yield* withdrawn(row.podUid), [true], first)
      }
    })
  )

  it.effect("if another deployment with its revision withdraws it, but not for an engine of another revision with that name", () =>
    Effect.gen(function* () {
      const [sentinels, runs, sql] = [yield* Sentinels, yield* Runs, yield* PgClient.PgClient]
      const [{ caller, id, orgId, row, suspicion }, other] = [yield* makeEngine("reused"), yield* makeEngine("unrelated", { pod: "reused-0" })]
      for (const engine of [{ id, orgId, row }, other]) yield* runs.publishEndpoints(engine.id, engine.orgId, [{ url, pod: row.pod }])
      for (const alarm of [suspicion, other.suspicion]) yield* sentinels.raise(alarm)
      const next = yield* (yield* Deployments).create(newModel(caller, "reused-again", "reused-again"))
      yield* sql`UPDATE deployments SET revision_id = ${suspicion.revisionId} WHERE id = ${next.id}`
      yield* runs.publishEndpoints(next.id, orgId, [])
      assert.deepStrictEqual([yield* withdrawn(row.podUid), yield* withdrawn(other.row.podUid)], [[true], [false]])
    })
  )
})
