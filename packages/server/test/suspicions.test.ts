import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { RequestList, SuspicionList } from "@seatrial/api"
import { Ids, RequestId, SuspicionId } from "@seatrial/domain"
import { Deployments } from "@seatrial/store"
import { newModel } from "@seatrial/store/testing"
import { Effect, Schema } from "effect"
import { type Answer, jsonOf, layerStage, makeCaller, Stage } from "./stage.ts"

const decode =
  <A>(schema: Schema.Codec<A, unknown>) =>
  (answer: Answer): A =>
    Schema.decodeUnknownSync(schema)(jsonOf(answer), { onExcessProperty: "error" })
const listOf = decode(SuspicionList)
const path = "/v1/org/suspicions"
const minute = 60_000

/** An organization with a model, suspicions about its engine, and requests: five in the time of the first suspicion. */
const makeSuspected = Effect.fnUntraced(function* (slug: string) {
  const [ids, sql] = [yield* Ids, yield* PgClient.PgClient]
  const tenant = yield* makeCaller()
  const { id, modelId } = yield* (yield* Deployments).create(newModel(tenant.caller, slug))
  const begin = Date.now() - 60 * minute
  const raise = Effect.fnUntraced(function* (number: number, withdrawn: number | null) {
    const at = begin + number * minute + 30_000
    const suspicion = yield* ids.make(SuspicionId, at)
    yield* sql`INSERT INTO suspicions ${sql.insert({
      org_id: tenant.orgId,
      created_at: new Date(at),
      id: suspicion,
      deployment_id: id,
      model_id: modelId,
      revision_id: "rev_01890000000000000000000000",
      pod: `${slug}-0`,
      pod_uid: `${slug}-${number}`,
      restarts: 0,
      node: "secret-node",
      since: new Date(begin + number * minute),
      probes: 21,
      evidence: 7e12,
      engines: 2,
      withdrawn_at: withdrawn === null ? null : new Date(begin + withdrawn * minute)
    })}`
    return suspicion
  })
  const ask = Effect.fnUntraced(function* (at: number, status: number, model = `${modelId}`) {
    const request = yield* ids.make(RequestId, at)
    const row = { org_id: tenant.orgId, created_at: new Date(at), id: request, endpoint: "/v1/chat/completions", api_key_id: tenant.caller.keyId }
    yield* sql`INSERT INTO requests ${sql.insert({ ...row, state: "completed", status_code: status, model_id: model, model: slug })}`
  })
  for (const [second, status] of [
    [-1, 200],
    [0, 200],
    [10, 200],
    [20, 404],
    [30, 500],
    [59, 200],
    [60, 200]
  ] as const)
    yield* ask(begin + minute + second * 1_000, status)
  yield* ask(begin + minute, 200, "mdl_01890000000000000000000000")
  return { ...tenant, modelId, begin, first: yield* raise(1, 2), second: yield* raise(5, null) }
})

layer(layerStage(), { excludeTestServices: true })("the suspicions of an organization", (it) => {
  it.effect("are listed newest first in pages, with the requests that the engine may have answered wrongly", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { begin, first, key, modelId, second } = yield* makeSuspected("suspected")
      const { data } = listOf(yield* call("GET", path, { key }))
      assert.deepStrictEqual(
        data.map(({ id, requests, withdrawn_at }) => [id, requests, withdrawn_at]),
        [
          [second, 0, null],
          [first, 5, new Date(begin + 2 * minute).toISOString()]
        ]
      )
      assert.deepInclude(data[1], { model_id: modelId, engine: "suspected-0", probes: 21, evidence: 12.8, engines: 2 })
      // The node is not shown.
      assert.notInclude(JSON.stringify(data), "secret-node")
      const requests = decode(RequestList)(yield* call("GET", data[1]?.requests_url ?? "", { key }))
      assert.strictEqual(requests.data.length, 5)
      const page = listOf(yield* call("GET", `${path}?limit=1`, { key }))
      const rest = listOf(yield* call("GET", `${path}?limit=1&cursor=${page.next_cursor}`, { key }))
      assert.deepStrictEqual([page.data[0]?.id, rest.data[0]?.id, rest.next_cursor], [second, first, null])
    })
  )

  it.effect("are not shown to another organization, nor without the scope", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      yield* makeSuspected("theirs")
      const { key } = yield* makeCaller()
      assert.deepStrictEqual(listOf(yield* call("GET", path, { key })).data, [])
      assert.strictEqual((yield* call("GET", path)).status, 401)
    })
  )
})
