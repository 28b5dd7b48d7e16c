import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Metering, type RequestEnd, Routes, Runs, Sentinels } from "../src/index.ts"
import { fromPayload, toPayload } from "../src/metering/spoolRow.ts"
import { endOf, startOf } from "./requestRows.ts"
import { layerSentinels, makeEngine } from "./sentinelEngine.ts"
import { soon } from "./stage.ts"
import { beginRequest, makeCaller, makeServing } from "./support/index.ts"

const [one, other] = ["01890000-0000-4000-8000-000000000001", "01890000-0000-4000-8000-000000000002"]

layer(layerSentinels, { excludeTestServices: true })("the record of a request", (it) => {
  it.effect("names the engine that answered it, whatever its begin named", () =>
    Effect.gen(function* () {
      const [metering, sql] = [yield* Metering, yield* PgClient.PgClient]
      const { caller } = yield* makeCaller("names")
      const served = yield* makeServing(caller, "k")
      const refusal = { statusCode: 503, latencyMs: 3, error: { code: "model_overloaded", message: "m", param: null } }
      const record = Effect.fnUntraced(function* (begin: string | null | undefined, end: Partial<RequestEnd> | "refused") {
        const start = yield* startOf(caller, served)
        if (begin !== undefined) yield* beginRequest(metering, { ...start, engine: begin })
        if (end === "refused") yield* metering.refuse({ ...start, ...refusal, engine: other })
        else yield* metering.end(endOf(start, end))
        const rows = yield* sql<{ readonly engine: string | null }>`SELECT engine FROM requests WHERE id = ${start.id}`
        return rows.map(({ engine }) => engine)
      })
      assert.deepStrictEqual(yield* record(one, { engine: one }), [one])
      // It moved to another engine.
      assert.deepStrictEqual(yield* record(one, { engine: other }), [other])
      assert.deepStrictEqual(yield* record(one, "refused"), [other])
      assert.deepStrictEqual(yield* record(one, {}), [one])
      // Its begin was lost.
      assert.deepStrictEqual(yield* record(undefined, { engine: other }), [other])
      assert.deepStrictEqual(yield* record(null, {}), [null])
    })
  )

  it.effect("keeps the engine while it waits on disk, and has none if an earlier version wrote it there", () =>
    Effect.sync(() => {
      const row = { id: "req", orgId: "org", state: "running", keyId: "key", endpoint: "/", streamed: true, modelId: "mdl", model: "m" } as const
      const begin = { kind: "insert", row: { ...row, revisionId: "rev", statusCode: null, costMicros: null, latencyMs: null, error: null } } as const
      for (const stored of [begin, { ...begin, row: { ...begin.row, engine: one } }])
        assert.deepStrictEqual(Option.getOrNull(fromPayload(toPayload(stored))), stored)
    })
  )
})

layer(layerSentinels, { excludeTestServices: true })("a published engine", (it) => {
  it.effect("is known to the gateways by the UID of its pod", () =>
    Effect.gen(function* () {
      const [routes, runs] = [yield* Routes, yield* Runs]
      const { caller } = yield* makeCaller("uids")
      const { model, operation } = yield* makeServing(caller, "k")
      const url = "http://10.0.0.1:8000"
      const publish = (podUid?: string) => runs.publishEndpoints(operation.id, caller.orgId, [{ url, pod: "p-0", ...(podUid === undefined ? {} : { podUid }) }])
      const routed = Effect.sync(() => routes.known(caller.orgId, model)?.endpoints)
      yield* publish()
      const { revisionId } = yield* Effect.fromNullishOr(routes.known(caller.orgId, model)).pipe(Effect.retry({ times: 1_000 }))
      yield* routes.markReachable({ orgId: caller.orgId, revisionId, runtime: "reference", url, pod: "p-0" })
      yield* soon(Effect.map(routed, (endpoints) => endpoints?.length === 1))
      assert.deepStrictEqual(yield* routed, [{ url, pod: "p-0" }])
      // It stays reachable. An UID that Kubernetes would not give, or none, changes nothing.
      for (const podUid of [one, undefined, "pod-1"]) {
        yield* publish(podUid)
        yield* soon(Effect.map(routed, (endpoints) => endpoints?.[0]?.engine === one))
      }
      yield* publish(other)
      yield* soon(Effect.map(routed, (endpoints) => endpoints?.[0]?.engine === other))
    })
  )

  it.effect("answers rightly again if its container restarted in its pod after an alarm", () =>
    Effect.gen(function* () {
      const [sentinels, runs, sql] = [yield* Sentinels, yield* Runs, yield* PgClient.PgClient]
      const { id, orgId, row, suspicion } = yield* makeEngine("returns", { podUid: one })
      const publish = runs.publishEndpoints(id, orgId, [{ url: "http://10.0.0.1:8000", pod: row.pod, podUid: one }])
      const returned = Effect.map(sql<{ readonly at: Date | null }>`SELECT returned_at AS at FROM suspicions WHERE pod_uid = ${one}`, (rows) =>
        rows.map(({ at }) => at !== null)
      )
      yield* publish
      yield* sentinels.raise(suspicion)
      yield* publish
      assert.deepStrictEqual(yield* returned, [false])
      yield* runs.publishEndpoints(id, orgId, [])
      assert.deepStrictEqual(yield* returned, [false])
      yield* publish
      assert.deepStrictEqual(yield* returned, [true])
    })
  )
})
