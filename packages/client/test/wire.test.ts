import { assert, describe, it } from "@effect/vitest"
import { DeploymentFinished, IdempotencyKeyReused, NotFound, RateLimited } from "@seatrial/api"
import { Effect, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import {
  ConnectionError,
  InputError,
  InvalidInput,
  NotSeatrial,
  type RetryPolicy,
  SeatrialClient,
  toSeatrialError,
  Unreachable,
  VersionSkew
} from "../src/index.ts"
import { error, misbehaving, requestId, reset, type Scripted, seatrial } from "./misbehaving.ts"

const at = "2026-01-02T03:04:05.006Z"
const operation = { id: "dep_x", object: "deployment", model_id: "mdl_x", revision_id: null, status: "screening", status_url: "/v1/deployments/dep_x" }
const created = seatrial(201, operation, { location: "/v1/deployments/dep_x" })
const replayed = seatrial(200, operation, { location: "/v1/deployments/dep_x", "idempotent-replayed": "true" })
const limited = error(429, "rate_limit_error", "key_rate_limited", { "retry-after": "0" })
const away = error(503, "api_error", "unavailable", { "retry-after": "0" })
const finished = error(409, "conflict_error", "deployment_finished")
const emptyPage = seatrial(200, { object: "list", data: [], next_cursor: null })
const html: Scripted = { status: 200, headers: { "content-type": "text/html" }, body: "<html>Welcome</html>" }
const proxied: Scripted = { status: 502, headers: { "content-type": "text/html", "retry-after": "0" }, body: "<html>Bad gateway</html>" }

const detail = (status: string) =>
  seatrial(200, {
    ...{ id: "dep_x", object: "deployment", model_id: "mdl_x", model: "acme/x", status, failure_detail: null, created_at: at, updated_at: at, ended_at: at },
    ...{ revision_id: null, hf_revision: null, started_by_user_id: null, phases: [{ status: "screening", at }], checks: [], revision: null }
  })

const quick = { firstPause: 1, longestPause: 2 }

/** A client of a server with this script. */
const stage = Effect.fnUntraced(function* (script: ReadonlyArray<Scripted | typeof reset>, retry: Partial<RetryPolicy> = quick) {
  const server = yield* misbehaving(script)
  const client = yield* SeatrialClient.make({ address: `${server.address}/`, apiKey: Redacted.make("seatrial_secret"), retry })
  return { client, server }
})

const live = (promise: string, test: () => Effect.Effect<void, unknown, FetchHttpClientScope>) =>
  it.live(promise, () => test().pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer)))
type FetchHttpClientScope = Effect.Services<ReturnType<typeof stage>>

const payload = { source: { kind: "model_hub", repo: "acme/x" } } as const

describe("a create", () => {
  live("sends the same idempotency key with every attempt", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([reset, away, limited, { ...created, cut: true }, replayed])
      const result = yield* client.deployments.create(payload)
      assert.strictEqual(result.operation.id, "dep_x")
      assert.isTrue(result.replayed)
      assert.strictEqual(server.received.length, 5)
      assert.deepStrictEqual([...new Set(server.received.map(({ idempotencyKey }) => idempotencyKey))], [result.idempotencyKey])
      assert.strictEqual(new Set(server.received.map(({ body }) => body)).size, 1)
    })
  )

  live("uses a new key for another call, and the caller's key if there is one", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([created, created, created])
      assert.isFalse((yield* client.deployments.create(payload)).replayed)
      yield* client.deployments.create(payload)
      yield* client.deployments.create(payload, { idempotencyKey: "mine" })
      assert.strictEqual(new Set(server.received.map(({ idempotencyKey }) => idempotencyKey)).size, 3)
      assert.strictEqual(server.received[2]?.idempotencyKey, "mine")
    })
  )

  live("is not retried after a refusal", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([error(409, "conflict_error", "idempotency_key_reused")])
      assert.instanceOf(yield* Effect.flip(client.deployments.create(payload)), IdempotencyKeyReused)
      assert.strictEqual(server.received.length, 1)
    })
  )
})

describe("a change of a model", () => {
  const done: Scripted = { status: 204, headers: { "x-request-id": requestId }, body: "" }
  const missing = error(404, "not_found_error", "not_found")

  live("addresses the model as one path segment, by id or by name", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([done, done, done])
      yield* client.models.disable("acme/tiny")
      yield* client.models.enable("mdl_x")
      yield* client.models.delete("tiny")
      assert.deepStrictEqual(
        server.received.map(({ method, url }) => `${method} ${url}`),
        ["POST /v1/models/acme%2Ftiny/disable", "POST /v1/models/mdl_x/enable", "DELETE /v1/models/tiny"]
      )
    })
  )

  live("that deletes it may find no model after an attempt whose response was lost, and at no other time", () =>
    Effect.gen(function* () {
      yield* (yield* stage([reset, missing])).client.models.delete("tiny")
      for (const script of [[missing], [limited, missing]]) assert.instanceOf(yield* Effect.flip((yield* stage(script)).client.models.delete("tiny")), NotFound)
    })
  )
})

describe("a cancel", () => {
  live("succeeds if the run is canceled after an attempt whose response was lost", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([reset, finished, detail("cancelled")])
      assert.deepStrictEqual(yield* client.deployments.cancel("dep_x"), { id: "dep_x", cancelled: true })
      assert.deepStrictEqual(
        server.received.map(({ method }) => method),
        ["POST", "POST", "GET"]
      )
    })
  )

  live("is refused for a run that ended in another way in the meantime", () =>
    Effect.gen(function* () {
      const { client } = yield* stage([away, finished, detail("activated")])
      assert.instanceOf(yield* Effect.flip(client.deployments.cancel("dep_x")), DeploymentFinished)
    })
  )

  live("is refused for a run that was finished before, without a second request", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([limited, finished, detail("cancelled")])
      assert.instanceOf(yield* Effect.flip(client.deployments.cancel("dep_x")), DeploymentFinished)
      assert.strictEqual(server.received.length, 2)
    })
  )

  live("fails with the server's error if the run cannot be read", () =>
    Effect.gen(function* () {
      const { client } = yield* stage([reset, finished, error(403, "permission_error", "missing_scope", {}, "deployments:read")])
      assert.instanceOf(yield* Effect.flip(client.deployments.cancel("dep_x")), DeploymentFinished)
    })
  )
})

describe("a read", () => {
  live("is retried after resets, truncated responses, proxies, 429 and 503, with the key each time", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([reset, { ...emptyPage, cut: true }, proxied, limited, away, emptyPage], { ...quick, attempts: 6 })
      assert.deepStrictEqual((yield* client.requests.page({ limit: 3, from: 5 })).data, [])
      assert.strictEqual(server.received.length, 6)
      for (const { authorization, url } of server.received) {
        assert.strictEqual(authorization, "Bearer seatrial_secret")
        assert.strictEqual(url, "/v1/requests?limit=3&from=5")
      }
    })
  )

  live("fails with the last refusal after all attempts, with the server's retry time", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([error(429, "rate_limit_error", "org_rate_limited", { "retry-after": "7" })], { attempts: 1 })
      const failure = yield* Effect.flip(client.requests.page())
      assert.isTrue(failure instanceof RateLimited && failure.retryAfter === 7 && failure.error.code === "org_rate_limited")
      assert.strictEqual(server.received.length, 1)
    })
  )

  live("escapes the id, and rejects an id that would address another operation before anything is sent", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([error(404, "not_found_error", "not_found")])
      assert.instanceOf(yield* Effect.flip(client.requests.get("a/b?c")), NotFound)
      assert.strictEqual(server.received[0]?.url, "/v1/requests/a%2Fb%3Fc")
      for (const id of ["", ".", ".."]) assert.instanceOf(yield* Effect.flip(client.requests.get(id)), InvalidInput)
      assert.strictEqual(server.received.length, 1)
    })
  )

  live("with invalid input is rejected before anything is sent", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([])
      assert.instanceOf(yield* Effect.flip(client.requests.page({ limit: 1000 })), InvalidInput)
      assert.instanceOf(yield* Effect.flip(client.deployments.create(payload, { idempotencyKey: "no spaces" })), InvalidInput)
      assert.strictEqual(server.received.length, 0)
    })
  )
})

describe("a list", () => {
  const page = (ids: ReadonlyArray<string>, next: string | null) =>
    seatrial(200, {
      object: "list",
      data: ids.map((id) => ({
        ...{ id, object: "org_model", slug: id, display_name: id, status: "active", visibility: "private", hf_repo: "a/b", hf_revision: "c", created_at: at },
        ...{ updated_at: at, revision: null }
      })),
      next_cursor: next
    })

  live("follows the cursors with the same filters, also over an empty page, and fetches no page before it is needed", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([page(["a", "b"], "one"), page([], "two"), reset, page(["c"], null)])
      const rows = client.org.models.list({ q: "x%", pageSize: 2 })
      assert.deepStrictEqual(
        (yield* Stream.runCollect(Stream.take(rows, 2))).map(({ id }) => id),
        ["a", "b"]
      )
      assert.strictEqual(server.received.length, 1)
    })
  )

  live("ends with the page without a cursor", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([page(["a", "b"], "one"), page([], "two"), reset, page(["c"], null)])
      const rows = yield* Stream.runCollect(client.org.models.list({ q: "x%", pageSize: 2 }))
      assert.deepStrictEqual(
        rows.map(({ id }) => id),
        ["a", "b", "c"]
      )
      assert.deepStrictEqual(
        server.received.map(({ url }) => new URLSearchParams(url.slice(url.indexOf("?"))).get("cursor")),
        [null, "one", "two", "two"]
      )
      for (const { url } of server.received) assert.match(url, /limit=2/)
      for (const { url } of server.received) assert.match(url, /q=x%25/)
    })
  )
})

describe("other servers are distinguished", () => {
  const cases: ReadonlyArray<readonly [promise: string, answer: Scripted, is: unknown]> = [
    ["a page of another server", html, NotSeatrial],
    ["JSON of another server", { status: 200, headers: { "content-type": "application/json" }, body: '{"hello": "world"}' }, NotSeatrial],
    ["a status that no operation has", { status: 418, body: "" }, NotSeatrial],
    ["a status without a body for an unconditional request", { status: 304, body: "" }, NotSeatrial],
    ["a Seatrial server with other records", seatrial(200, { object: "request", id: 1 }), VersionSkew],
    ["a Seatrial server without the operation", error(405, "invalid_request_error", "method_not_allowed"), VersionSkew],
    ["a Seatrial server with an error that this client does not know", error(404, "not_found_error", "gone_fishing"), VersionSkew]
  ]
  for (const [promise, answer, is] of cases) {
    live(promise, () =>
      Effect.gen(function* () {
        const { client, server } = yield* stage([answer])
        const failure = yield* Effect.flip(client.requests.get("req_x"))
        assert.isTrue(typeof is === "function" && failure instanceof is, `${failure._tag}`)
        assert.strictEqual(server.received.length, 1)
      })
    )
  }

  live("no server at the address", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([])
      server.close()
      const failure = yield* Effect.flip(client.system.health())
      assert.instanceOf(failure, Unreachable)
      assert.include(failure.message, server.address)
      assert.notInclude(JSON.stringify(failure), "seatrial_secret")
    })
  )

  it.effect("an invalid address", () =>
    Effect.gen(function* () {
      for (const address of ["", "localhost:8080", "ftp://x"]) assert.instanceOf(yield* Effect.flip(SeatrialClient.make({ address })), InvalidInput)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it("input that was never sent is not a connection error", () => {
    const failure = toSeatrialError(new InvalidInput({ message: "limit is too large.", param: "limit" }))
    assert.instanceOf(failure, InputError)
    assert.deepStrictEqual([failure.name, failure.code, failure.param], ["InputError", "invalid_input", "limit"])
    assert.notInstanceOf(failure, ConnectionError)
  })
})
