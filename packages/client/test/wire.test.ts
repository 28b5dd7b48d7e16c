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

/** A client of a server with that script. */
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
  live("sends the same idempotency key with every try, whatever became of the one before", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([reset, away, limited, { ...created, cut: true }, replayed])
      const made = yield* client.deployments.create(payload)
      assert.strictEqual(made.operation.id, "dep_x")
      assert.isTrue(made.replayed)
      assert.strictEqual(server.seen.length, 5)
      assert.deepStrictEqual([...new Set(server.seen.map(({ idempotencyKey }) => idempotencyKey))], [made.idempotencyKey])
      assert.strictEqual(new Set(server.seen.map(({ body }) => body)).size, 1)
    })
  )

  live("takes another key for another call, and the caller's where there is one", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([created, created, created])
      assert.isFalse((yield* client.deployments.create(payload)).replayed)
      yield* client.deployments.create(payload)
      yield* client.deployments.create(payload, { idempotencyKey: "mine" })
      assert.strictEqual(new Set(server.seen.map(({ idempotencyKey }) => idempotencyKey)).size, 3)
      assert.strictEqual(server.seen[2]?.idempotencyKey, "mine")
    })
  )

  live("that is refused is not tried again", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([error(409, "conflict_error", "idempotency_key_reused")])
      assert.instanceOf(yield* Effect.flip(client.deployments.create(payload)), IdempotencyKeyReused)
      assert.strictEqual(server.seen.length, 1)
    })
  )
})

describe("a change of a model", () => {
  const done: Scripted = { status: 204, headers: { "x-request-id": requestId }, body: "" }
  const missing = error(404, "not_found_error", "not_found")

  live("names the model as one segment of the path, by id or by name", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([done, done, done])
      yield* client.models.disable("acme/tiny")
      yield* client.models.enable("mdl_x")
      yield* client.models.delete("tiny")
      assert.deepStrictEqual(
        server.seen.map(({ method, url }) => `${method} ${url}`),
        ["POST /v1/models/acme%2Ftiny/disable", "POST /v1/models/mdl_x/enable", "DELETE /v1/models/tiny"]
      )
    })
  )

  live("that deletes it may find no model after a try whose answer was lost, and at no other time", () =>
    Effect.gen(function* () {
      yield* (yield* stage([reset, missing])).client.models.delete("tiny")
      for (const script of [[missing], [limited, missing]]) assert.instanceOf(yield* Effect.flip((yield* stage(script)).client.models.delete("tiny")), NotFound)
    })
  )
})

describe("a cancel", () => {
  live("that may have been carried out by a try whose answer was lost counts as done where the run is cancelled", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([reset, finished, detail("cancelled")])
      assert.deepStrictEqual(yield* client.deployments.cancel("dep_x"), { id: "dep_x", cancelled: true })
      assert.deepStrictEqual(
        server.seen.map(({ method }) => method),
        ["POST", "POST", "GET"]
      )
    })
  )

  live("of a run that ended otherwise meanwhile is refused", () =>
    Effect.gen(function* () {
      const { client } = yield* stage([away, finished, detail("activated")])
      assert.instanceOf(yield* Effect.flip(client.deployments.cancel("dep_x")), DeploymentFinished)
    })
  )

  live("of a run that was finished before is refused, without a second question", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([limited, finished, detail("cancelled")])
      assert.instanceOf(yield* Effect.flip(client.deployments.cancel("dep_x")), DeploymentFinished)
      assert.strictEqual(server.seen.length, 2)
    })
  )

  live("where the run cannot be looked at is refused as the server said", () =>
    Effect.gen(function* () {
      const { client } = yield* stage([reset, finished, error(403, "permission_error", "missing_scope", {}, "deployments:read")])
      assert.instanceOf(yield* Effect.flip(client.deployments.cancel("dep_x")), DeploymentFinished)
    })
  )
})

describe("a read", () => {
  live("is tried again over resets, cut answers, proxies, 429 and 503, and carries the key each time", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([reset, { ...emptyPage, cut: true }, proxied, limited, away, emptyPage], { ...quick, attempts: 6 })
      assert.deepStrictEqual((yield* client.requests.page({ limit: 3, from: 5 })).data, [])
      assert.strictEqual(server.seen.length, 6)
      for (const { authorization, url } of server.seen) {
        assert.strictEqual(authorization, "Bearer seatrial_secret")
        assert.strictEqual(url, "/v1/requests?limit=3&from=5")
      }
    })
  )

  live("gives the last refusal once its tries are used up, with the time that the server named", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([error(429, "rate_limit_error", "org_rate_limited", { "retry-after": "7" })], { attempts: 1 })
      const failure = yield* Effect.flip(client.requests.page())
      assert.isTrue(failure instanceof RateLimited && failure.retryAfter === 7 && failure.error.code === "org_rate_limited")
      assert.strictEqual(server.seen.length, 1)
    })
  )

  live("escapes the id, and refuses one that would name another operation before anything is sent", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([error(404, "not_found_error", "not_found")])
      assert.instanceOf(yield* Effect.flip(client.requests.get("a/b?c")), NotFound)
      assert.strictEqual(server.seen[0]?.url, "/v1/requests/a%2Fb%3Fc")
      for (const id of ["", ".", ".."]) assert.instanceOf(yield* Effect.flip(client.requests.get(id)), InvalidInput)
      assert.strictEqual(server.seen.length, 1)
    })
  )

  live("of what the contract does not take is refused before anything is sent", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([])
      assert.instanceOf(yield* Effect.flip(client.requests.page({ limit: 1000 })), InvalidInput)
      assert.instanceOf(yield* Effect.flip(client.deployments.create(payload, { idempotencyKey: "no spaces" })), InvalidInput)
      assert.strictEqual(server.seen.length, 0)
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

  live("follows the cursors with the filters unchanged, over an empty page too, and fetches no page before it is needed", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([page(["a", "b"], "one"), page([], "two"), reset, page(["c"], null)])
      const rows = client.org.models.list({ q: "x%", pageSize: 2 })
      assert.deepStrictEqual(
        (yield* Stream.runCollect(Stream.take(rows, 2))).map(({ id }) => id),
        ["a", "b"]
      )
      assert.strictEqual(server.seen.length, 1)
    })
  )

  live("ends with the page that has no cursor", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([page(["a", "b"], "one"), page([], "two"), reset, page(["c"], null)])
      const rows = yield* Stream.runCollect(client.org.models.list({ q: "x%", pageSize: 2 }))
      assert.deepStrictEqual(
        rows.map(({ id }) => id),
        ["a", "b", "c"]
      )
      assert.deepStrictEqual(
        server.seen.map(({ url }) => new URLSearchParams(url.slice(url.indexOf("?"))).get("cursor")),
        [null, "one", "two", "two"]
      )
      for (const { url } of server.seen) assert.match(url, /limit=2/)
      for (const { url } of server.seen) assert.match(url, /q=x%25/)
    })
  )
})

describe("what is not the server that it should be is told apart", () => {
  const cases: ReadonlyArray<readonly [promise: string, answer: Scripted, is: unknown]> = [
    ["a page of something else", html, NotSeatrial],
    ["JSON of something else", { status: 200, headers: { "content-type": "application/json" }, body: '{"hello": "world"}' }, NotSeatrial],
    ["a status that no operation has", { status: 418, body: "" }, NotSeatrial],
    ["a status without a body that was not asked for", { status: 304, body: "" }, NotSeatrial],
    ["a Seatrial server whose records are others", seatrial(200, { object: "request", id: 1 }), VersionSkew],
    ["a Seatrial server that does not know the operation", error(405, "invalid_request_error", "method_not_allowed"), VersionSkew],
    ["a Seatrial server with an error that this client does not know", error(404, "not_found_error", "gone_fishing"), VersionSkew]
  ]
  for (const [promise, answer, is] of cases) {
    live(promise, () =>
      Effect.gen(function* () {
        const { client, server } = yield* stage([answer])
        const failure = yield* Effect.flip(client.requests.get("req_x"))
        assert.isTrue(typeof is === "function" && failure instanceof is, `${failure._tag}`)
        assert.strictEqual(server.seen.length, 1)
      })
    )
  }

  live("nobody at the address", () =>
    Effect.gen(function* () {
      const { client, server } = yield* stage([])
      server.close()
      const failure = yield* Effect.flip(client.system.health())
      assert.instanceOf(failure, Unreachable)
      assert.include(failure.message, server.address)
      assert.notInclude(JSON.stringify(failure), "seatrial_secret")
    })
  )

  it.effect("an address that is none", () =>
    Effect.gen(function* () {
      for (const address of ["", "localhost:8080", "ftp://x"]) assert.instanceOf(yield* Effect.flip(SeatrialClient.make({ address })), InvalidInput)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it("input that was never sent is no error of the connection", () => {
    const failure = toSeatrialError(new InvalidInput({ message: "limit is too large.", param: "limit" }))
    assert.instanceOf(failure, InputError)
    assert.deepStrictEqual([failure.name, failure.code, failure.param], ["InputError", "invalid_input", "limit"])
    assert.notInstanceOf(failure, ConnectionError)
  })
})
