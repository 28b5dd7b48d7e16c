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
const requestsOf = decode(RequestList)
const path = "/v1/org/suspicions"
const Failure = Schema.Struct({ error: Schema.Struct({ code: Schema.String, param: Schema.optionalKey(Schema.NullOr(Schema.String)) }) })
const assertFailure = (answer: Answer, status: number, code: string, param?: string) => {
  const { error } = Schema.decodeUnknownSync(Failure)(jsonOf(answer))
  assert.deepStrictEqual([answer.status, error.code, error.param ?? undefined], [status, code, param])
}
const minute = 60_000

interface Asked {
  /** Seconds after the first suspicion's last good probe. */
  readonly at: number
  readonly status?: number
  readonly seconds?: number
  readonly engine?: string | null
  readonly running?: boolean
}

/** An organization with a model, two suspicions about engines of it, and ways to add requests. */
const makeSuspected = Effect.fnUntraced(function* (slug: string) {
  const [ids, sql] = [yield* Ids, yield* PgClient.PgClient]
  const tenant = yield* makeCaller()
  const { id, modelId } = yield* (yield* Deployments).create(newModel(tenant.caller, slug))
  const begin = Date.now() - 60 * minute
  const engine = crypto.randomUUID()
  const raise = Effect.fnUntraced(function* (at: number, podUid: string, over: { readonly withdrawn_at?: Date; readonly returned_at?: Date } = {}) {
    const suspicion = yield* ids.make(SuspicionId, at)
    yield* sql`INSERT INTO suspicions ${sql.insert({
      org_id: tenant.orgId,
      created_at: new Date(at),
      id: suspicion,
      deployment_id: id,
      model_id: modelId,
      revision_id: "rev_01890000000000000000000000",
      pod: `${slug}-0`,
      pod_uid: podUid,
      restarts: 0,
      node: "secret-node",
      since: new Date(begin),
      probes: 21,
      evidence: 7e12,
      engines: 2,
      ...over
    })}`
    return suspicion
  })
  const ask = Effect.fnUntraced(function* ({ at, engine: by = engine, running = false, seconds = 1, status = 200 }: Asked, orgId = `${tenant.orgId}`) {
    const created = begin + at * 1_000
    const request = yield* ids.make(RequestId, created)
    const row = { org_id: orgId, created_at: new Date(created), id: request, endpoint: "/v1/chat/completions", api_key_id: tenant.caller.keyId }
    const end = running ? { state: "running" } : { state: "completed", status_code: status, latency_ms: seconds * 1_000, cost_micros: 0 }
    yield* sql`INSERT INTO requests ${sql.insert({ ...row, ...end, model_id: modelId, model: slug, engine: by })}`
    return `${request}`
  })
  const withdrawn_at = new Date(begin + minute)
  const first = yield* raise(begin + minute - 1_000, engine, { withdrawn_at, returned_at: new Date(begin + 3 * minute) })
  return { ...tenant, modelId, begin, ask, first, second: yield* raise(begin + 5 * minute, crypto.randomUUID()) }
})

layer(layerStage(), { excludeTestServices: true })("the suspicions of an organization", (it) => {
  it.effect("are listed newest first in pages, with exactly the requests that the engine answered since its last good probe", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { ask, begin, first, key, modelId, second } = yield* makeSuspected("suspected")
      const other = yield* makeCaller()
      const suspect = yield* Effect.forEach(
        [
          // Began while the probe was answered, and ended after it.
          { at: -2, seconds: 3 },
          { at: 0 },
          { at: 20, status: 404 },
          { at: 30, status: 500 },
          // Ended after the engine was withdrawn; began before a gateway knew that.
          { at: 59, seconds: 90 },
          { at: 61 }
        ],
        (request) => ask(request)
      )
      // Answered before the probe, by the next start in the same pod, by another engine, by an unknown one, and not yet.
      for (const request of [
        { at: -2 },
        { at: -60 },
        { at: 181 },
        { at: 30, engine: crypto.randomUUID() },
        { at: 30, engine: null },
        { at: 31, running: true }
      ])
        yield* ask(request)
      yield* ask({ at: 30 }, other.orgId)
      const { data } = listOf(yield* call("GET", path, { key }))
      assert.deepStrictEqual(
        data.map(({ id, requests, withdrawn_at }) => [id, requests, withdrawn_at]),
        [
          [second, 0, null],
          [first, suspect.length, new Date(begin + minute).toISOString()]
        ]
      )
      assert.deepInclude(data[1], { model_id: modelId, engine: "suspected-0", probes: 21, evidence: 12.8, engines: 2 })
      // The node is not shown.
      assert.notInclude(JSON.stringify(data), "secret-node")
      const url = data[1]?.requests_url ?? ""
      const all = requestsOf(yield* call("GET", url, { key }))
      assert.deepStrictEqual([all.data.map(({ id }) => id), all.next_cursor], [suspect.toReversed(), null])
      const half = requestsOf(yield* call("GET", `${url}?limit=4`, { key }))
      const rest = requestsOf(yield* call("GET", `${url}?limit=4&cursor=${half.next_cursor}`, { key }))
      assert.deepStrictEqual([...half.data, ...rest.data], all.data)
      const page = listOf(yield* call("GET", `${path}?limit=1`, { key }))
      const next = listOf(yield* call("GET", `${path}?limit=1&cursor=${page.next_cursor}`, { key }))
      assert.deepStrictEqual([page.data[0]?.id, next.data[0]?.id, next.next_cursor], [second, first, null])
    })
  )

  it.effect("refuse what is no parameter, no cursor of the list, or no suspicion of the organization", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { ask, first, key, second } = yield* makeSuspected("parameters")
      for (const at of [1, 2, 3]) yield* ask({ at })
      const requests = (id: string, query = "") => call("GET", `${path}/${id}/requests${query}`, { key })
      assertFailure(yield* requests(first, "?limit=0"), 400, "invalid_parameter", "limit")
      assertFailure(yield* requests(first, "?limit=201"), 400, "invalid_parameter", "limit")
      assertFailure(yield* requests(first, "?status=success"), 400, "unknown_parameter", "status")
      assertFailure(yield* call("GET", `${path}?model_id=x`, { key }), 400, "unknown_parameter", "model_id")
      const { next_cursor } = requestsOf(yield* requests(first, "?limit=1"))
      assertFailure(yield* requests(second, `?cursor=${next_cursor}`), 400, "invalid_cursor", "cursor")
      assertFailure(yield* call("GET", `/v1/org/requests?cursor=${next_cursor}`, { key }), 400, "invalid_cursor", "cursor")
      for (const id of ["sus_01890000000000000000000000", "req_01890000000000000000000000", "x", "%00"]) assertFailure(yield* requests(id), 404, "not_found")
    })
  )

  it.effect("are not shown to another organization, nor without the scope", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const { first } = yield* makeSuspected("theirs")
      const { key } = yield* makeCaller()
      assert.deepStrictEqual(listOf(yield* call("GET", path, { key })).data, [])
      assertFailure(yield* call("GET", `${path}/${first}/requests`, { key }), 404, "not_found")
      for (const list of [path, `${path}/${first}/requests`]) assert.strictEqual((yield* call("GET", list)).status, 401)
    })
  )
})
