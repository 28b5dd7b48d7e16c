import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import type { DeploymentId, OrgId } from "@seatrial/domain"
import { Effect, Exit, Layer, Stream } from "effect"
import { Decisions, Deployments, type NewDecision, OperatorTerm } from "../src/index.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller, newModel } from "./support/index.ts"

const layerDecisions = Decisions.layerSql.pipe(Layer.provide(layerRole("operator")), Layer.provideMerge(layerStore))

const makeRun = Effect.fnUntraced(function* (slug: string) {
  const { caller } = yield* makeCaller(slug)
  const { id } = yield* (yield* Deployments).create(newModel(caller, slug, slug))
  return { id, orgId: caller.orgId }
})

const rowOf = ({ id, orgId }: { readonly id: DeploymentId; readonly orgId: OrgId }, series: number, seq: number, rule = "queued"): NewDecision => ({
  orgId,
  deploymentId: id,
  series,
  seq,
  decidedAt: series + seq,
  rule,
  observation: JSON.stringify({ series, seq, text: 'a "quoted" text' }),
  decision: JSON.stringify({ rule, actions: [] })
})

const termOf = (term: number) => Effect.provideService(OperatorTerm, term)

/** The place of each recorded decision, in the order of reading. */
const read = (id: DeploymentId | null) =>
  Effect.flatMap(Decisions, (decisions) =>
    Effect.map(Stream.runCollect(decisions.read(id)), (rows) => rows.map(({ seq, series, term }) => `${term} ${series} ${seq}`))
  )

layer(layerDecisions, { excludeTestServices: true })("recorded decisions", (it) => {
  it.effect("are read in the order in which they were made, with what was observed and decided", () =>
    Effect.gen(function* () {
      const decisions = yield* Decisions
      const run = yield* makeRun("order")
      yield* termOf(10)(decisions.record("next", [rowOf(run, 4, 0)]))
      yield* termOf(9)(decisions.record("1.0", [rowOf(run, 1_700_000_000_002, 0), rowOf(run, 1_700_000_000_002, 1, "booting"), rowOf(run, 3, 0)]))
      assert.deepStrictEqual(yield* read(run.id), ["9 3 0", "9 1700000000002 0", "9 1700000000002 1", "10 4 0"])
      const rows = yield* Stream.runCollect(decisions.read(run.id))
      assert.deepInclude(rows[2], {
        decidedAt: 1_700_000_000_003,
        build: "1.0",
        rule: "booting",
        observation: { series: 1_700_000_000_002, seq: 1, text: 'a "quoted" text' },
        decision: { rule: "booting", actions: [] }
      })
    })
  )

  it.effect("are read completely in pages, of one run or of all", () =>
    Effect.gen(function* () {
      const decisions = yield* Decisions
      const [run, other] = [yield* makeRun("pages"), yield* makeRun("pages-other")]
      yield* decisions.record(
        "1",
        Array.from({ length: 450 }, (_, seq) => rowOf(run, 1, seq))
      )
      yield* decisions.record("1", [rowOf(other, 1, 0)])
      assert.deepStrictEqual(
        yield* read(run.id),
        Array.from({ length: 450 }, (_, seq) => `0 1 ${seq}`)
      )
      assert.isAtLeast((yield* read(null)).length, 451)
    })
  )

  it.effect("are stored once, however often the operator repeats the statement, and never for a run that is gone", () =>
    Effect.gen(function* () {
      const decisions = yield* Decisions
      const [run, gone] = [yield* makeRun("once"), yield* makeRun("once-gone")]
      const sql = yield* PgClient.PgClient
      yield* sql`DELETE FROM outbox WHERE deployment_id = ${gone.id}`
      yield* sql`DELETE FROM deployment_phases WHERE deployment_id = ${gone.id}`
      yield* sql`DELETE FROM idempotency_keys WHERE deployment_id = ${gone.id}`
      yield* sql`DELETE FROM deployments WHERE id = ${gone.id}`
      const rows = [rowOf(run, 1, 0), rowOf(gone, 2, 0), rowOf(run, 1, 1)]
      yield* decisions.record("1", rows)
      yield* decisions.record("1", rows)
      assert.deepStrictEqual([yield* read(run.id), yield* read(gone.id)], [["0 1 0", "0 1 1"], []])
    })
  )

  it.effect("are deleted by whole series, by the age of their beginning and the clock of the database", () =>
    Effect.gen(function* () {
      const decisions = yield* Decisions
      const sql = yield* PgClient.PgClient
      const run = yield* makeRun("age")
      yield* decisions.record("1", [rowOf(run, 1, 0)])
      yield* sql`UPDATE decisions SET begun_at = begun_at - interval '3 days' WHERE deployment_id = ${run.id}`
      // A later record of an old series is as old as its series.
      yield* decisions.record("1", [rowOf(run, 1, 1), rowOf(run, 2, 0)])
      assert.strictEqual(yield* decisions.removeOlder(4), 0)
      assert.strictEqual(yield* decisions.removeOlder(3), 2)
      assert.deepStrictEqual(yield* read(run.id), ["0 2 0"])
    })
  )

  it.effect("are refused to the server and the gateways, and cannot be changed by the operator", () =>
    Effect.gen(function* () {
      const refused = (role: "server" | "gateway" | "operator", statement: string) =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          return Exit.isFailure(yield* Effect.exit(sql.unsafe(statement)))
        }).pipe(Effect.provide(Layer.fresh(layerRole(role))))
      assert.deepStrictEqual(
        [
          yield* refused("server", "SELECT * FROM decisions"),
          yield* refused("gateway", "SELECT * FROM decisions"),
          yield* refused("operator", "UPDATE decisions SET rule = 'x'"),
          yield* refused("operator", "SELECT * FROM decisions")
        ],
        [true, true, true, false]
      )
    })
  )
})
