import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Tracer } from "effect"
import { layerStage, Stage } from "../../packages/server/test/stage.ts"
import { nameOf, operations } from "./tenants/operations.ts"
import { makeRecords } from "./tenants/records.ts"
import { rightCall } from "./tenants/wrongness.ts"

/** The statements that the server sent, by trace of the request. */
const sent = new Map<string, Array<string>>()

class WatchedSpan extends Tracer.NativeSpan {
  override attribute(key: string, value: unknown): void {
    if (key === "db.query.text") sent.set(this.traceId, [...(sent.get(this.traceId) ?? []), String(value)])
    super.attribute(key, value)
  }
}
const layerWatched = Layer.succeed(Tracer.Tracer, Tracer.make({ span: (options) => new WatchedSpan(options) }))

const never = "01890000000000000000000000"

layer(layerStage().pipe(Layer.provide(layerWatched)), { excludeTestServices: true })("a look-up", (it) => {
  it.effect("sends the same statements for another organization's record as for a nonexistent one", () =>
    Effect.gen(function* () {
      const { call } = yield* Stage
      const own = yield* makeRecords("homeward")
      const foreign = yield* makeRecords("zzforeignzz")
      const { secret: key } = own.key
      const statementsOf = Effect.fnUntraced(function* (
        status: number,
        method: string,
        path: string,
        body?: string,
        headers: Readonly<Record<string, string>> = {}
      ) {
        const trace = crypto.randomUUID().replaceAll("-", "")
        const answer = yield* call(method, path, {
          key,
          ...(body === undefined ? {} : { body }),
          headers: { ...headers, traceparent: `00-${trace}-00000000000000aa-01` }
        })
        assert.strictEqual(answer.status, status, `${method} ${path}: ${answer.text}`)
        return sent.get(trace) ?? []
      })
      // From here on the key is cached.
      yield* statementsOf(200, "GET", "/v1/models")
      for (const operation of operations) {
        if (operation.id === undefined) continue
        const ask = (id: string, status: number) => {
          const { body, method, path } = rightCall(operation, id)
          return statementsOf(status, method, path, body)
        }
        assert.isNotEmpty(yield* ask(own.records[operation.id], operation.right))
        const absent = yield* ask(`${foreign.records[operation.id].slice(0, 4)}${never}`, 404)
        assert.isNotEmpty(absent)
        assert.deepStrictEqual(yield* ask(foreign.records[operation.id], 404), absent, nameOf(operation))
      }
      const again = (id: string) => statementsOf(404, "POST", "/v1/deployments", JSON.stringify({ model_id: id }), { "idempotency-key": "again" })
      const absent = yield* again(`mdl_${never}`)
      assert.isNotEmpty(absent)
      assert.deepStrictEqual(yield* again(foreign.modelId), absent)
      for (const operation of operations) {
        for (const filter of operation.filters ?? []) {
          const ids = { model_id: foreign.modelId, api_key_id: foreign.key.id, actor_user_id: foreign.userId }
          const none = yield* statementsOf(200, "GET", `${operation.path}?${filter}=${ids[filter].slice(0, 4)}${never}`)
          assert.deepStrictEqual(yield* statementsOf(200, "GET", `${operation.path}?${filter}=${ids[filter]}`), none, nameOf(operation))
        }
      }
    })
  )
})
