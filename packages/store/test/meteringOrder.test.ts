import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids, idMillis, RequestId, zeroPrices } from "@seatrial/domain"
import { Effect, Fiber, Option } from "effect"
import { Deployments, Metering, type RequestEnd, type RequestStart, Requests, Runs } from "../src/index.ts"
import { endRow, tokensOf } from "../src/metering/endRow.ts"
import { checkpointStatement, endStatement, recordStatement } from "../src/metering/statements.ts"
import { hold, waiting } from "./locks.ts"
import { layerStore } from "./stage.ts"
import { beginRequest, makeCaller, makeServing, newModel, walk } from "./support/index.ts"

const makeRequests = Effect.fnUntraced(function* (slug: string, count: number) {
  const ids = yield* Ids
  const { caller } = yield* makeCaller(slug)
  const { model, modelId, revisionId } = yield* makeServing(caller, "k")
  return yield* Effect.forEach(Array.from({ length: count }), () =>
    Effect.map(ids.make(RequestId), (id) => {
      const start: RequestStart = { id, orgId: caller.orgId, keyId: caller.keyId, endpoint: "/", streamed: false, modelId, model, revisionId }
      const end: RequestEnd = {
        ...start,
        statusCode: 200,
        usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: null, cache_write_tokens: null },
        ttftMs: null,
        latencyMs: 1,
        finishReason: "stop",
        error: null,
        note: null,
        receipt: { prices: zeroPrices, hfRevision: "c".repeat(40), engineVersion: "reference-1" }
      }
      return { start, end, created: new Date(idMillis(id)) }
    })
  )
})

layer(layerStore, { excludeTestServices: true })("in whatever order the database answers", (it) => {
  it.effect("an end that overtakes its begin is the complete record, and the begin does not change it", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const [slow] = yield* makeRequests("order", 1)
      if (slow === undefined) return assert.fail()
      const release = yield* hold(
        sql`INSERT INTO requests (org_id, created_at, id, state, endpoint) VALUES (${slow.start.orgId}, ${slow.created}, ${slow.start.id}, 'running', '/')`,
        false
      )
      const begin = yield* Effect.forkChild(beginRequest(metering, slow.start), { startImmediately: true })
      yield* waiting(1)
      const end = yield* Effect.forkChild(metering.end(slow.end), { startImmediately: true })
      yield* waiting(2)
      yield* release
      yield* Fiber.join(begin)
      yield* Fiber.join(end)
      const stored = Effect.all([requests.find(slow.start.orgId, slow.start.id), requests.findReceipt(slow.start.orgId, slow.start.id)])
      const [record, receipt] = yield* stored
      assert.deepStrictEqual([Option.getOrThrow(record).state, Option.getOrThrow(receipt).config_revision], ["completed", slow.start.revisionId])
      yield* beginRequest(metering, slow.start)
      assert.deepStrictEqual(yield* stored, [record, receipt])
    })
  )

  it.effect("statements that lock the same requests in opposite orders do not deadlock", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      for (const pair of ["checkpoints", "begins", "replays", "ends"] as const) {
        const all = (yield* makeRequests(`circle-${pair}`, 3)).toSorted((one, other) => (one.start.id < other.start.id ? -1 : 1))
        const [, middle] = all
        if (middle === undefined) return assert.fail()
        const begins = all.map(({ start }) => ({ ...start, state: "running" as const, statusCode: null, costMicros: null, latencyMs: null, error: null }))
        const ends = all.map(({ end, start }) => ({ ...endRow(end), ...start, state: "completed" as const }))
        const checkpoints = all.map(({ end, start }) => ({ id: start.id, orgId: start.orgId, ...tokensOf(end.usage) }))
        const other = {
          checkpoints: checkpointStatement(sql, checkpoints.toReversed()),
          begins: recordStatement(sql, begins.toReversed()),
          replays: endStatement(sql, ends.toReversed(), "running"),
          ends: recordStatement(sql, ends.toReversed())
        }
        yield* recordStatement(sql, begins)
        // Each statement has locked its first row and waits for the middle one.
        const release = yield* hold(sql`SELECT 1 FROM requests WHERE org_id = ${middle.start.orgId} AND id = ${middle.start.id} FOR UPDATE`, true)
        const first = yield* Effect.forkChild(pair === "begins" ? recordStatement(sql, begins) : checkpointStatement(sql, checkpoints), {
          startImmediately: true
        })
        yield* waiting(1)
        const second = yield* Effect.forkChild(other[pair], { startImmediately: true })
        yield* waiting(2)
        yield* release
        yield* Fiber.join(first)
        assert.lengthOf(yield* Fiber.join(second), pair === "replays" || pair === "ends" ? 3 : 0, pair)
      }
    })
  )

  it.effect("one statement counts the costs of ends before those of whole answers, in separate sums, so that two of them cannot deadlock", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const [begun, whole] = yield* makeRequests("sums", 2)
      if (begun === undefined || whole === undefined) return assert.fail()
      const row = { state: "running" as const, statusCode: null, costMicros: null, latencyMs: null, error: null }
      yield* recordStatement(sql, [{ ...begun.start, ...row }])
      const ends = [begun, whole].map(({ end, start }, index) => ({ ...endRow(end), ...start, state: "completed" as const, costMicros: BigInt(5 + index) }))
      yield* recordStatement(sql, ends)
      const sums = yield* sql<{ readonly isInsert: boolean; readonly micros: bigint }>`
        SELECT shard >= 8 AS "isInsert", total_micros AS micros FROM spend_sums WHERE org_id = ${begun.start.orgId} AND api_key_id = '' ORDER BY shard`
      assert.deepStrictEqual(
        sums.map(({ isInsert, micros }) => [isInsert, BigInt(micros)]),
        [
          [false, 5n],
          [true, 6n]
        ]
      )
    })
  )

  it.effect("several ends of one request in one commit create one receipt", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const metering = yield* Metering
      const requests = yield* Requests
      const all = yield* makeRequests("shared", 3)
      const [first, second, third] = all
      if (first === undefined || second === undefined || third === undefined) return assert.fail()
      yield* Effect.forEach(all, ({ start }) => beginRequest(metering, start))
      const release = yield* hold(sql`SELECT 1 FROM requests WHERE org_id = ${first.start.orgId} AND id <> ${third.start.id} FOR UPDATE`, true)
      const busy = yield* Effect.forkChild(metering.end(first.end), { startImmediately: true })
      yield* waiting(1)
      const busyToo = yield* Effect.forkChild(metering.end(second.end), { startImmediately: true })
      yield* waiting(2)
      const ends = yield* Effect.forEach(Array.from({ length: 3 }), () => Effect.forkChild(metering.end(third.end), { startImmediately: true }))
      yield* release
      yield* Effect.forEach([busy, busyToo, ...ends], Fiber.join)
      assert.isTrue(Option.isSome(yield* requests.findReceipt(third.start.orgId, third.start.id)))
    })
  )

  it.effect("an activation waits for a concurrent cancel and then does nothing", () =>
    Effect.gen(function* () {
      const deployments = yield* Deployments
      const runs = yield* Runs
      const { caller } = yield* makeCaller("cancel-first")
      const { orgId } = caller
      const { id } = yield* deployments.create(newModel(caller, "k"))
      yield* walk(caller, id, "activating")
      const release = yield* hold(deployments.cancel(orgId, id, caller.userId), true)
      const activation = yield* Effect.forkChild(runs.activate({ id, orgId, from: "activating" }), { startImmediately: true })
      yield* waiting(1)
      yield* release
      assert.isFalse(yield* Fiber.join(activation))
      const run = Option.getOrThrow(yield* runs.observe(id))
      assert.deepStrictEqual([run.phase, run.activeRevisionId], ["cancelled", null])
    })
  )
})
