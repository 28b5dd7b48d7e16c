import { assert, layer } from "@effect/vitest"
import { ApiError, ConnectionError, createClient, SeatrialClient, SeatrialError } from "@seatrial/client"
import { type Phase, scopes, workingPhases } from "@seatrial/domain"
import { Runs } from "@seatrial/store"
import { Effect, Redacted, Ref, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { layerStage, makeTenant, Stage, tinyFacts } from "../../packages/server/test/stage.ts"

const source = { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" } as const

const tenant = Effect.fnUntraced(function* (given: Parameters<typeof makeTenant>[0] = scopes) {
  const { port } = yield* Stage
  const base = yield* makeTenant(given)
  const address = `http://127.0.0.1:${port}`
  const client = yield* SeatrialClient.make({ address, apiKey: Redacted.make(base.key) }).pipe(Effect.provide(FetchHttpClient.layer))
  return { ...base, address, client, plain: createClient({ address, apiKey: base.key }) }
})

const finish = Effect.fnUntraced(function* (deployment: string, orgId: Effect.Success<ReturnType<typeof makeTenant>>["orgId"], end: Phase) {
  const runs = yield* Runs
  const run = (yield* runs.live).find(({ id }) => id === deployment)?.id
  if (run === undefined) return yield* Effect.die(new Error(`${deployment} is not live`))
  let from: Phase = "screening"
  for (const to of [...workingPhases.slice(1), end]) {
    const failure = to === "failed" ? { failure: { code: "checks_failed", text: "1 of 9" } } : {}
    assert.isTrue(yield* runs.enter({ id: run, orgId, from, to, reason: "Test", ...failure }))
    from = to
  }
})

const rejection = (promise: Promise<unknown>) =>
  Effect.promise(() =>
    promise.then(
      () => assert.fail("it did not reject"),
      (error: unknown) => (error instanceof SeatrialError ? error : assert.fail(`not a SeatrialError: ${String(error)}`))
    )
  )

layer(layerStage(), { excludeTestServices: true })("the client with a real server", (it) => {
  it.effect("creates once per idempotency key, reads the deployment in both families, cancels it, and reads its audit events", () =>
    Effect.gen(function* () {
      const { client, orgId } = yield* tenant()
      const payload = { source, model_name: "first", serving: { max_context: 128 } }
      const created = yield* client.deployments.create(payload)
      const again = yield* client.deployments.create(payload, { idempotencyKey: created.idempotencyKey })
      assert.deepStrictEqual([created.replayed, again.replayed], [false, true])
      assert.deepStrictEqual(again.operation, created.operation)
      const { id, model_id } = created.operation
      assert.strictEqual((yield* client.deployments.get(id)).status, "screening")
      assert.strictEqual((yield* client.org.deployments.get(id)).phases[0]?.status, "screening")
      assert.strictEqual((yield* client.deployments.events(id)).deployment_id, id)
      assert.deepStrictEqual(yield* client.deployments.cancel(id), { id, cancelled: true })
      assert.strictEqual((yield* Effect.flip(client.deployments.cancel(id)))._tag, "DeploymentFinished")
      assert.deepStrictEqual(
        (yield* client.org.deployments.page({ status: "stopped" })).data.map((deployment) => deployment.id),
        [id]
      )

      const models = yield* Stream.runCollect(client.org.models.list({ q: "FIR" }))
      assert.deepStrictEqual(
        models.map((model) => model.id),
        [model_id]
      )
      assert.strictEqual((yield* client.org.models.get(model_id)).slug, "first")
      const events = yield* Stream.runCollect(client.org.auditEvents.list({ resource_type: "model_config", pageSize: 1 }))
      assert.include(
        events.map(({ action }) => action),
        "created"
      )
      const [newest] = events
      if (newest !== undefined) assert.deepStrictEqual(yield* client.org.auditEvents.get(newest.id), newest)
      assert.isString(orgId)
    })
  )

  it.effect("previews, and supports the operations without pages", () =>
    Effect.gen(function* () {
      const { client } = yield* tenant()
      const { hub } = yield* Stage
      yield* Ref.set(hub, () => Effect.succeed(tinyFacts))
      const preview = yield* client.deployments.preview({ source })
      assert.strictEqual(preview.object, "deployment_preview")
      assert.deepStrictEqual(yield* client.models.list(), [])
      assert.deepStrictEqual(yield* client.catalog.list(), [])
      assert.deepStrictEqual(yield* client.system.health(), { status: "ok" })
      assert.deepStrictEqual(yield* client.system.readiness(), { status: "ok" })
      assert.deepStrictEqual((yield* client.requests.page({ status: "success", from: 0, to: 5 })).data, [])
      assert.deepStrictEqual(yield* Stream.runCollect(client.org.requests.list()), [])
      assert.strictEqual((yield* Effect.flip(client.requests.receipt("req_x")))._tag, "NotFound")
    })
  )

  it.effect("returns every row of a list once, newest first, as a stream and as an async iterable that can end early", () =>
    Effect.gen(function* () {
      const { client, plain } = yield* tenant()
      const createdIds: Array<string> = []
      for (let index = 0; index < 7; index++) createdIds.unshift((yield* client.deployments.create({ source, model_name: `m-${index}` })).operation.id)
      assert.deepStrictEqual(
        (yield* Stream.runCollect(client.deployments.list({ pageSize: 3 }))).map(({ id }) => id),
        createdIds
      )
      const iterated = yield* Effect.promise(async () => {
        const ids: Array<string> = []
        for await (const { id } of plain.org.deployments.list({ pageSize: 2, status: "running" })) ids.push(id)
        return ids
      })
      assert.deepStrictEqual(iterated, createdIds)
      const [first] = yield* Effect.promise(async () => {
        for await (const { id } of plain.deployments.list({ pageSize: 1 })) return [id]
        return []
      })
      assert.strictEqual(first, createdIds[0])
    })
  )

  it.effect("follows a run through all phases to a typed outcome", () =>
    Effect.gen(function* () {
      const { client, orgId, plain } = yield* tenant()
      for (const end of ["cancelled", "failed"] as const) {
        const { id } = (yield* client.deployments.create({ source, model_name: `to-${end}` })).operation
        const observedPhases: Array<Phase> = []
        // The run proceeds while it is followed: the callback of the first phase starts it.
        const follow = client.waitForDeployment(id, {
          onPhase: ({ status }) =>
            Effect.andThen(
              Effect.sync(() => observedPhases.push(status)),
              status === "screening" ? finish(id, orgId, end) : Effect.void
            )
        })
        const outcome = yield* follow
        assert.strictEqual(outcome.outcome, end)
        assert.deepStrictEqual(observedPhases, [...workingPhases, end])
        const reportedPhases: Array<string> = []
        const same = yield* Effect.promise(() => plain.waitForDeployment(id, { onPhase: ({ status }) => reportedPhases.push(status) }))
        assert.strictEqual(same.outcome === "failed" ? same.failure : "none", end === "failed" ? "checks_failed: 1 of 9" : "none")
        assert.strictEqual(reportedPhases.length, 11)
      }
    })
  )

  it.effect("its promises reject with error classes that have status, code, param and request ID", () =>
    Effect.gen(function* () {
      const { address, plain } = yield* tenant(["deployments:read"])
      const missing = yield* rejection(plain.deployments.get("dep_x"))
      assert.instanceOf(missing, ApiError)
      assert.deepStrictEqual([missing.status, missing.code, missing.param], [404, "not_found", null])
      assert.match(missing.requestId ?? "", /^req_/)
      const scope = yield* rejection(plain.requests.page())
      assert.deepStrictEqual([scope.status, scope.code, scope.param], [403, "missing_scope", "requests:read"])
      const cursor = yield* rejection(plain.deployments.page({ cursor: "nonsense" }))
      assert.deepStrictEqual([cursor.status, cursor.code], [400, "invalid_cursor"])
      const stranger = yield* rejection(createClient({ address, apiKey: "seatrial_wrong" }).deployments.page())
      assert.deepStrictEqual([stranger.status, stranger.code], [401, "invalid_api_key"])
      const nobody = yield* rejection(createClient({ address: "http://127.0.0.1:9", retry: { attempts: 1 } }).system.health())
      assert.instanceOf(nobody, ConnectionError)
      assert.deepStrictEqual([nobody.status, nobody.code, nobody.name], [null, "unreachable", "ConnectionError"])
      const gone = yield* rejection(
        (async () => {
          for await (const _ of plain.requests.list()) return
        })()
      )
      assert.strictEqual(gone.code, "missing_scope")
      assert.throws(() => createClient({ address: "nowhere" }), SeatrialError)
    })
  )

  it.effect("waiting ends when its signal aborts, and leaves the deployment running", () =>
    Effect.gen(function* () {
      const { client, plain } = yield* tenant()
      const { id } = (yield* client.deployments.create({ source })).operation
      const controller = new AbortController()
      const reason = new Error("enough")
      const ended = yield* Effect.promise(() =>
        plain.waitForDeployment(id, { signal: controller.signal, onPhase: () => controller.abort(reason) }).then(
          () => undefined,
          (cause: unknown) => cause
        )
      )
      assert.strictEqual(ended, reason)
      assert.strictEqual((yield* client.deployments.get(id)).status, "screening")
    })
  )
})
