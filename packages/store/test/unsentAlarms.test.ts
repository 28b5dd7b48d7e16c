import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import { Effect, Layer } from "effect"
import { OperatorTerm, OperatorTerms, Sentinels, UnsentAlarms } from "../src/index.ts"
import { layerSentinels, makeEngine } from "./sentinelEngine.ts"
import { layerRole, layerStore } from "./stage.ts"

const layerAlarms = UnsentAlarms.layerSql.pipe(
  Layer.provide([layerRole("operator"), Ids.layer]),
  Layer.provideMerge(Layer.mergeAll(layerSentinels, layerStore))
)

layer(layerAlarms, { excludeTestServices: true })("alarms for the webhook", (it) => {
  it.effect("are listed in their order until they were sent, for all organizations", () =>
    Effect.gen(function* () {
      const [alarms, sentinels] = [yield* UnsentAlarms, yield* Sentinels]
      const [one, other] = [yield* makeEngine("sent-a"), yield* makeEngine("sent-b")]
      yield* sentinels.raise(one.suspicion)
      yield* sentinels.raise({ ...other.suspicion, node: null })
      const [first, second, ...rest] = yield* alarms.list
      assert.deepStrictEqual(rest, [])
      assert.deepStrictEqual([first?.orgId, first?.node, first?.suspicion.engine], [one.orgId, "node-1", "sent-a-0"])
      assert.deepStrictEqual([second?.orgId, second?.node, second?.suspicion.withdrawn_at], [other.orgId, null, second?.suspicion.created_at])
      assert.isDefined(first)
      assert.isTrue(yield* alarms.markSent(first))
      assert.deepStrictEqual(yield* alarms.list, second === undefined ? [] : [second])
      yield* alarms.markSent(second ?? first)
      assert.deepStrictEqual(yield* alarms.list, [])
    })
  )

  it.effect("stay unsent if the operator no longer leads, and are given up after a day", () =>
    Effect.gen(function* () {
      const [alarms, sentinels, sql, terms] = [yield* UnsentAlarms, yield* Sentinels, yield* PgClient.PgClient, yield* OperatorTerms]
      yield* sentinels.raise((yield* makeEngine("sent-late")).suspicion)
      const [alarm] = yield* alarms.list
      assert.isDefined(alarm)
      const term = yield* terms.begin
      yield* terms.begin
      assert.isFalse(yield* alarms.markSent(alarm).pipe(Effect.provideService(OperatorTerm, term)))
      assert.deepStrictEqual(yield* alarms.list, [alarm])
      yield* sql`UPDATE suspicions SET created_at = created_at - interval '25 hours' WHERE id = ${alarm.id}`
      assert.deepStrictEqual(yield* alarms.list, [])
    })
  )
})
