import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Deployments, OperatorTerm, OperatorTerms, Runs, type SentinelRow, Sentinels } from "../src/index.ts"
import { layerSentinels, makeEngine } from "./sentinelEngine.ts"
import { makeCaller, makeServing, newModel, walk } from "./support/index.ts"

const stored = ({ alarmedAt, goodAt, goodProbes, probedAt, probes, recent, total }: SentinelRow) => ({
  alarmedAt,
  goodAt,
  goodProbes,
  probedAt,
  probes,
  recent,
  total
})

layer(layerSentinels, { excludeTestServices: true })("the state of probed engines", (it) => {
  it.effect("is read by the next leader for the same start of the engine, and deleted with its pod", () =>
    Effect.gen(function* () {
      const sentinels = yield* Sentinels
      const [one, other] = [yield* makeEngine("state-a"), yield* makeEngine("state-b")]
      yield* sentinels.save([one.row, other.row], [])
      yield* sentinels.save([{ ...one.row, total: 3, probes: 8 }], [])
      assert.deepStrictEqual(Option.getOrNull(yield* sentinels.read(one.row)), stored({ ...one.row, total: 3, probes: 8 }))
      assert.isTrue(Option.isNone(yield* sentinels.read({ ...one.row, restarts: 1 })))
      yield* sentinels.save([], [one.row.podUid])
      assert.isTrue(Option.isNone(yield* sentinels.read(one.row)))
      assert.isTrue(Option.isSome(yield* sentinels.read(other.row)))
    })
  )

  it.effect("is not written for a deployment of another organization, nor by an operator that no longer leads", () =>
    Effect.gen(function* () {
      const sentinels = yield* Sentinels
      const terms = yield* OperatorTerms
      const [one, other] = [yield* makeEngine("foreign-a"), yield* makeEngine("foreign-b")]
      yield* sentinels.save([{ ...one.row, orgId: other.orgId }], [])
      assert.isTrue(Option.isNone(yield* sentinels.read(one.row)))
      const term = yield* terms.begin
      const asOf = (value: number) => Effect.provideService(OperatorTerm, value)
      yield* asOf(term)(sentinels.save([one.row], []))
      yield* terms.begin
      yield* asOf(term)(sentinels.save([{ ...one.row, probes: 99 }], []))
      yield* asOf(term)(sentinels.save([], [one.row.podUid]))
      assert.strictEqual(Option.getOrNull(yield* sentinels.read(one.row))?.probes, 7)
    })
  )

  it.effect("is an alarm until a new revision of a model with one engine takes over", () =>
    Effect.gen(function* () {
      const [deployments, runs, sentinels, sql] = [yield* Deployments, yield* Runs, yield* Sentinels, yield* PgClient.PgClient]
      const { caller } = yield* makeCaller("taken-over")
      const { orgId } = caller
      const { modelId, operation, revisionId } = yield* makeServing(caller, "k1")
      const pod = `${operation.id}-0`
      yield* runs.publishEndpoints(operation.id, orgId, [{ url: "http://10.0.0.1:8000", pod }])
      const { row } = yield* makeEngine("taken-over-row", { orgId, deploymentId: operation.id, pod })
      yield* sentinels.raise({ modelId, revisionId, node: "node-1", row: { ...row, alarmedAt: row.probedAt } })
      const open = Effect.map(sql`SELECT FROM suspicions WHERE pod_uid = ${row.podUid} AND withdrawn_at IS NULL`, ({ length }) => length)
      assert.strictEqual(yield* open, 1)
      const { id } = yield* deployments.create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
      yield* walk(caller, id, "activating")
      yield* runs.activate({ id, orgId, from: "activating" })
      assert.strictEqual(yield* open, 0)
    })
  )

  it.effect("is an alarm once for each start, which ends when the engine is withdrawn", () =>
    Effect.gen(function* () {
      const [sentinels, runs, sql] = [yield* Sentinels, yield* Runs, yield* PgClient.PgClient]
      const { id, orgId, row, suspicion } = yield* makeEngine("alarm")
      const url = "http://10.0.0.1:8000"
      yield* runs.publishEndpoints(id, orgId, [{ url, pod: row.pod }])
      assert.strictEqual(yield* sentinels.raise(suspicion), 1)
      assert.strictEqual(yield* sentinels.raise(suspicion), 1)
      const mine = Effect.map(sentinels.alarmed, (all) => all.filter(({ podUid }) => podUid === row.podUid))
      const [alarmed] = yield* mine
      assert.deepInclude(alarmed, { pod: row.pod, restarts: 0, since: row.goodAt, probes: 3, lately: 1 })
      const withdrawn = Effect.map(
        sql<{
          readonly at: Date | null
          readonly node: string
        }>`SELECT withdrawn_at AS at, node FROM suspicions WHERE pod_uid = ${row.podUid} ORDER BY created_at`,
        (rows) => rows.map(({ at, node }) => [at !== null, node])
      )
      assert.deepStrictEqual(yield* withdrawn, [[false, "node-1"]])
      yield* runs.publishEndpoints(id, orgId, [{ url: "http://10.0.0.2:8000", pod: `${row.pod}-other` }])
      assert.deepStrictEqual(yield* withdrawn, [[true, "node-1"]])
      // The next start of an engine of that deployment.
      const next = { ...suspicion, row: { ...suspicion.row, restarts: 1 } }
      assert.strictEqual(yield* sentinels.raise(next), 2)
      assert.deepStrictEqual(
        (yield* mine).map(({ lately, restarts }) => [restarts, lately]),
        [[1, 2]]
      )
    })
  )
})
