import { assert, layer } from "@effect/vitest"
import { RequestId } from "@seatrial/domain"
import { Requests, Runs } from "@seatrial/store"
import { makeCaller, makeServing } from "@seatrial/store/testing"
import { Effect, Option, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { done, makeEngine, streams } from "../../packages/gateway/test/fakeEngine.ts"
import { startGateway } from "../../packages/gateway/test/gatewayProcess.ts"
import { layerStore } from "../../packages/gateway/test/serving.ts"
import { fetched, type ReceivedAnswer, send, soon } from "../../packages/gateway/test/stage.ts"

/** Milliseconds within which any number of requests wake a model once, however many gateways there are. */
const wakePause = 2_000

const idOf = (received: ReceivedAnswer) => Schema.decodeUnknownSync(RequestId)(received.headers()["x-request-id"])

/** A model that idles: its engine is not there, and starts took as long as measured. */
const makeIdle = Effect.fnUntraced(function* (slug: string) {
  const sql = yield* SqlClient.SqlClient
  const { caller, secret } = yield* makeCaller(slug)
  const { model, operation, revisionId } = yield* makeServing(caller, "k")
  yield* sql`UPDATE revisions SET settings = settings || '{"hold_seconds":60}' WHERE org_id = ${caller.orgId} AND id = ${revisionId}`
  const parts = { image_pull: 2, weights_to_node: null, process_to_loaded: 20, loaded_to_ready: 19, first_token: 1 }
  yield* sql`
    INSERT INTO engine_starts (org_id, revision_id, pod_uid, kind, parts, created_at) VALUES (${caller.orgId}, ${revisionId}, 'pod', 'warm', ${JSON.stringify(parts)}, now())`
  const wakeUps = Effect.map(sql`SELECT 1 FROM outbox WHERE org_id = ${caller.orgId} AND deployment_id = ${operation.id}`, (rows) => rows.length)
  yield* sql`DELETE FROM outbox WHERE org_id = ${caller.orgId}`
  const body = { model, messages: [{ role: "user", content: "hi" }], stream: true }
  return { orgId: caller.orgId, key: Redacted.value(secret), operation, wakeUps, body }
})

layer(layerStore, { excludeTestServices: true })("an idle model", (it) => {
  it.effect("is started once for fifty callers of two gateways, and each caller waits without receiving a byte and is then served", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const requests = yield* Requests
      const { body, key, operation, orgId, wakeUps } = yield* makeIdle("woken")
      const gateways = [yield* startGateway(), yield* startGateway()]
      const engine = yield* makeEngine(streams(["a"]))
      const beganAt = performance.now()
      const crowd = yield* Effect.forEach(Array.from({ length: 50 }), (_, index) => send(gateways[index % 2]?.address ?? "", { key, body }))
      while ((yield* wakeUps) === 0) yield* Effect.sleep("5 millis")
      yield* soon(() => crowd.every(({ request }) => request.writableFinished))
      assert.isAtMost(yield* wakeUps, 1 + Math.floor((performance.now() - beganAt) / wakePause))
      assert.isTrue(crowd.every(({ response }) => response === undefined))
      yield* runs.publishEndpoints(operation.id, orgId, [{ url: engine.url, pod: "pod-0" }])
      yield* soon(() => crowd.every(({ ended }) => ended === "end"))
      assert.isTrue(crowd.every((received) => received.status() === 200 && received.text().endsWith(done)))
      const records = yield* Effect.forEach(crowd, (received) => requests.find(orgId, idOf(received)))
      assert.isTrue(records.every((record) => Option.getOrThrow(record).status_code === 200))
    })
  )

  it.effect("sends a Retry-After from its measured start times to a caller that waited without success, and serves the retry", () =>
    Effect.gen(function* () {
      const runs = yield* Runs
      const requests = yield* Requests
      const { body, key, operation, orgId } = yield* makeIdle("vain")
      const { address } = yield* startGateway({ GATEWAY_COLD_SECONDS: "0.5" })
      const received = yield* fetched(address, { key, body })
      assert.deepStrictEqual([received.status(), JSON.parse(received.text()).error.code], [503, "model_starting"])
      // 41 seconds as measured, less those that have passed.
      const seconds = Number(received.headers()["retry-after"])
      assert.isTrue(seconds > 30 && seconds <= 41, `${seconds} s`)
      assert.deepInclude(Option.getOrThrow(yield* requests.find(orgId, idOf(received))), { state: "refused", status_code: 503, cost_micros: "0" })
      const engine = yield* makeEngine(streams(["a"]))
      yield* runs.publishEndpoints(operation.id, orgId, [{ url: engine.url, pod: "pod-0" }])
      let again = yield* fetched(address, { key, body })
      while (again.status() !== 200) again = yield* fetched(address, { key, body })
      assert.isTrue(again.text().endsWith(done))
    })
  )
})
