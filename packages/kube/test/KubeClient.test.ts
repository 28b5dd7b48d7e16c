import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Schema } from "effect"
import { fenceWrites } from "../src/fenceWrites.ts"
import { Job, KubeClient, type KubeError, Pod } from "../src/index.ts"
import { type Answer, against, json, page, pod, reset, status } from "./ApiServer.ts"

const names = (pods: ReadonlyArray<Pod>) => pods.map((each) => each.metadata.name)
const bodyOf = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Unknown))

describe("KubeClient", () => {
  it.live("a list is read in pages of 250 and returned complete", () =>
    against([page([pod("a", "1"), pod("b", "2")], "9", "next"), page([pod("c", "3")], "9")], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const pods = yield* client.list(Pod, { namespace: "default", labelSelector: "app=x" })
        assert.deepStrictEqual(names(pods), ["a", "b", "c"])
        assert.deepStrictEqual(
          server.requests.map(({ path, query }) => [path, query.get("limit"), query.get("continue"), query.get("labelSelector")]),
          [
            ["/api/v1/namespaces/default/pods", "250", null, "app=x"],
            ["/api/v1/namespaces/default/pods", "250", "next", "app=x"]
          ]
        )
        assert.strictEqual(server.requests[0]?.headers.authorization, "Bearer secret-token")
      })
    )
  )

  it.live("a list that expires between two pages starts over, and the second time is requested in one page", () => {
    const expired = status(410, "Expired", "the continue token is too old")
    return against(
      [page([pod("a", "1")], "9", "t1"), expired, page([pod("a", "1")], "9", "t2"), expired, page([pod("a", "1"), pod("b", "2")], "9")],
      (server) =>
        Effect.gen(function* () {
          const client = yield* KubeClient
          assert.deepStrictEqual(names(yield* client.list(Pod, {})), ["a", "b"])
          assert.deepStrictEqual(
            server.requests.map(({ query }) => [query.get("limit"), query.get("continue")]),
            [
              ["250", null],
              ["250", "t1"],
              ["250", null],
              ["250", "t2"],
              [null, null]
            ]
          )
        })
    )
  })

  it.live("a page with more than 8 MiB is requested again with an eighth of the objects, and later ones with twice as many", () => {
    const large: Answer = ({ response }) => void response.end(Buffer.alloc(8 * 1024 * 1024 + 1, " "))
    return against([page([pod("a", "1")], "9", "t1"), large, large, page([pod("b", "2")], "9", "t2"), page([pod("c", "3")], "9")], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.deepStrictEqual(names(yield* client.list(Pod, {})), ["a", "b", "c"])
        assert.deepStrictEqual(
          server.requests.map(({ query }) => [query.get("limit"), query.get("continue")]),
          [
            ["250", null],
            ["250", "t1"],
            ["32", "t1"],
            ["4", "t1"],
            ["8", "t2"]
          ]
        )
      })
    )
  })

  it.live("a list with a large page is requested in pages even after two expired tokens", () => {
    const expired = status(410, "Expired", "the continue token is too old")
    const large: Answer = ({ response }) => void response.end(Buffer.alloc(8 * 1024 * 1024 + 1, " "))
    const first = page([pod("a", "1")], "9", "t1")
    return against([large, first, expired, first, expired, page([pod("a", "1")], "9")], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.deepStrictEqual(names(yield* client.list(Pod, {})), ["a"])
        assert.deepStrictEqual(
          server.requests.map(({ query }) => query.get("limit")),
          ["250", "32", "64", "64", "128", "128"]
        )
      })
    )
  })

  it.live("an object of more than 8 MiB is an error, not an endless loop", () => {
    const large: Answer = ({ response }) => void response.end(Buffer.alloc(8 * 1024 * 1024 + 1, " "))
    return against([large, large, large, large], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const error = yield* Effect.flip(client.list(Pod, {}))
        assert.strictEqual(error.reason, "TooLarge")
        assert.deepStrictEqual(
          server.requests.map(({ query }) => query.get("limit")),
          ["250", "32", "4", "1"]
        )
      })
    )
  })

  it.live("a list whose metadata follows its items is read completely", () => {
    const trailing: Answer = ({ response }) =>
      void response.end(JSON.stringify({ kind: "List", note: '"items":[', items: [pod("a", "1")], metadata: { continue: "t1" } }))
    return against([trailing, page([pod("b", "2")], "9")], () =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.deepStrictEqual(names(yield* client.list(Pod, {})), ["a", "b"])
      })
    )
  })

  it.live("an object that does not match its schema is skipped in a list and hides no other", () =>
    against([page([pod("a", "1"), { metadata: { name: "broken" }, spec: { containers: "none" } }, pod("b", "2")], "9")], () =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.deepStrictEqual(names(yield* client.list(Pod, {})), ["a", "b"])
      })
    )
  )

  it.live("server-side apply sends a JSON apply patch with the field manager seatrial and takes over conflicts", () =>
    against([json(200, pod("a", "5")), json(200, pod("a", "6"))], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const wanted = { metadata: { name: "a", namespace: "default", labels: { app: "x" } } }
        assert.strictEqual((yield* client.apply(Pod, wanted)).metadata.resourceVersion, "5")
        yield* client.applyStatus(Pod, wanted)
        assert.deepStrictEqual(
          server.requests.map(({ headers, method, path, query }) => [method, path, headers["content-type"], query.get("fieldManager"), query.get("force")]),
          [
            ["PATCH", "/api/v1/namespaces/default/pods/a", "application/apply-patch+yaml", "seatrial", "true"],
            ["PATCH", "/api/v1/namespaces/default/pods/a/status", "application/apply-patch+yaml", "seatrial", "true"]
          ]
        )
        assert.deepStrictEqual(bodyOf(server.requests[0]?.body), { apiVersion: "v1", kind: "Pod", ...wanted })
      })
    )
  )

  it.live("an object that is read and written back keeps unknown fields", () => {
    const stored = { ...pod("a", "5", { selfMade: true }), spec: { containers: [{ name: "main", unknown: [1] }], alsoUnknown: { deep: 1 } } }
    return against([json(200, { ...stored, metadata: { ...stored.metadata, managedFields: [{ manager: "x" }] } }), json(200, stored)], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const read = Option.getOrThrow(yield* client.get(Pod, "a", "default"))
        yield* client.update(Pod, read)
        assert.deepStrictEqual([server.requests[1]?.method, server.requests[1]?.path], ["PUT", "/api/v1/namespaces/default/pods/a"])
        assert.deepStrictEqual(bodyOf(server.requests[1]?.body), stored)
      })
    )
  })

  it.live("create posts to the collection; a merge patch and a status update use their content type and path", () =>
    against([json(201, pod("a", "1")), json(200, pod("a", "2")), json(200, pod("a", "3"))], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const created = yield* client.create(Pod, { metadata: { name: "a", namespace: "default" }, spec: { containers: [] } })
        yield* client.mergePatch(Pod, "a", "default", { metadata: { finalizers: null } })
        yield* client.updateStatus(Pod, { ...created, status: { phase: "Running" } })
        assert.deepStrictEqual(
          server.requests.map(({ headers, method, path }) => [method, path, headers["content-type"]]),
          [
            ["POST", "/api/v1/namespaces/default/pods", "application/json"],
            ["PATCH", "/api/v1/namespaces/default/pods/a", "application/merge-patch+json"],
            ["PUT", "/api/v1/namespaces/default/pods/a/status", "application/json"]
          ]
        )
        assert.deepStrictEqual(bodyOf(server.requests[1]?.body), { metadata: { finalizers: null } })
      })
    )
  )

  it.live("a delete carries its preconditions, does not orphan by default, and succeeds if the object does not exist", () =>
    against([json(200, { kind: "Status", status: "Success" }), status(404, "NotFound", "gone"), status(409, "Conflict", "the UID does not match")], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        yield* client.remove(Job, "load", "default", { uid: "u1", resourceVersion: "7", gracePeriodSeconds: 0 })
        yield* client.remove(Job, "load", "default")
        const conflict = yield* Effect.flip(client.remove(Job, "load", "default", { uid: "u2" }))
        assert.strictEqual(conflict.reason, "Conflict")
        assert.strictEqual(server.requests[0]?.path, "/apis/batch/v1/namespaces/default/jobs/load")
        assert.deepStrictEqual(bodyOf(server.requests[0]?.body), {
          apiVersion: "v1",
          kind: "DeleteOptions",
          propagationPolicy: "Background",
          gracePeriodSeconds: 0,
          preconditions: { uid: "u1", resourceVersion: "7" }
        })
      })
    )
  )

  it.live("a log is returned unchanged", () =>
    against([({ response }) => response.end("one\ntwo ✓\n")], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.strictEqual(yield* client.podLog("a", "default", { container: "main", tailLines: 2 }), "one\ntwo ✓\n")
        const [request] = server.requests
        assert.deepStrictEqual(
          [request?.path, request?.query.get("container"), request?.query.get("tailLines")],
          ["/api/v1/namespaces/default/pods/a/log", "main", "2"]
        )
      })
    )
  )

  const failures: ReadonlyArray<readonly [promise: string, answer: Answer, expected: Partial<KubeError>]> = [
    [
      "AlreadyExists is a conflict",
      status(409, "AlreadyExists", "it exists"),
      { reason: "Conflict", status: 409, message: "it exists", statusReason: "AlreadyExists" }
    ],
    ["a rejected object is invalid", status(422, "Invalid", "spec.x: required"), { reason: "Invalid", status: 422, message: "spec.x: required" }],
    ["a missing permission is denied", status(403, "Forbidden", "no"), { reason: "Denied", status: 403 }],
    ["an expired version is gone", status(410, "Expired", "too old"), { reason: "Gone", status: 410 }],
    ["a missing namespace is not found", status(404, "NotFound", "namespaces not found"), { reason: "NotFound", status: 404 }],
    [
      "too many requests may be retried after the given time",
      status(429, "TooManyRequests", "slow down", { "retry-after": "3" }),
      { reason: "Retryable", retryAfter: 3000 }
    ],
    [
      "an HTML page from a proxy does not crash the client",
      ({ response }) => response.writeHead(502).end("<html>bad gateway</html>"),
      { reason: "Retryable", status: 502 }
    ],
    ["a response that is not JSON does not crash the client", ({ response }) => response.writeHead(200).end("<html>hello</html>"), { reason: "Invalid" }],
    ["a reset connection may be retried", reset, { reason: "Retryable" }]
  ]
  for (const [promise, answer, expected] of failures) {
    it.live(promise, () =>
      against([answer], () =>
        Effect.gen(function* () {
          const client = yield* KubeClient
          const error = yield* Effect.flip(client.create(Pod, { metadata: { name: "a", namespace: "default" } }))
          for (const [field, value] of Object.entries(expected)) assert.strictEqual(Reflect.get(error, field), value, field)
        })
      )
    )
  }

  it.live("a missing object is none, but a missing kind is an error", () =>
    against([status(404, "NotFound", "pods a not found"), ({ response }) => response.writeHead(404).end("404 page not found\n")], () =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.deepStrictEqual(yield* client.get(Pod, "a", "default"), Option.none())
        assert.strictEqual((yield* Effect.flip(client.get(Pod, "a", "default"))).reason, "NotFound")
      })
    )
  )

  it.live("a server that does not respond in time may be retried, and its socket is closed", () =>
    against(
      [() => undefined],
      (server) =>
        Effect.gen(function* () {
          const client = yield* KubeClient
          assert.strictEqual((yield* Effect.flip(client.get(Pod, "a", "default"))).reason, "Retryable")
          yield* server.until(() => server.sockets.size === 0)
        }),
      { requestTimeout: "50 millis" }
    )
  )

  it.live("a create waits longer than a read, because a webhook may be slow, and reports a timeout", () =>
    against(
      [() => undefined, () => undefined],
      () =>
        Effect.gen(function* () {
          const client = yield* KubeClient
          const made = { metadata: { name: "a", namespace: "default" } }
          const [created, applied] = yield* Effect.all([Effect.flip(client.create(Pod, made)), Effect.flip(client.apply(Pod, made))], { concurrency: 2 })
          for (const { message, reason, statusReason } of [created, applied])
            assert.deepStrictEqual([reason, statusReason, message], ["Retryable", "Timeout", "the API server did not answer within 50ms"])
        }),
      { requestTimeout: "1 milli", createTimeout: "50 millis" }
    )
  )

  it.live("requests beyond the connection limit wait for a socket, and sockets are reused", () =>
    against(
      [],
      (server) =>
        Effect.gen(function* () {
          const client = yield* KubeClient
          server.fallback = json(200, pod("a", "1"))
          yield* Effect.forEach(Array.from({ length: 40 }), () => client.get(Pod, "a", "default"), { concurrency: "unbounded" })
          assert.strictEqual(server.requests.length, 40)
          assert.isAtMost(server.mostSockets, 3)
        }),
      { connections: 3 }
    )
  )

  it.live("a write is not sent if it is no longer allowed when it gets a socket", () =>
    against(
      [() => undefined],
      (server) =>
        Effect.gen(function* () {
          const client = yield* KubeClient
          server.fallback = json(200, pod("a", "1"))
          let may = true
          const fenced = fenceWrites(client, () => may)
          const first = yield* Effect.forkChild(client.get(Pod, "a", "default"))
          yield* server.until(() => server.requests.length === 1)
          const waiting = yield* Effect.forkChild(Effect.flip(fenced.mergePatch(Pod, "a", "default", {})))
          yield* Effect.sleep("50 millis")
          may = false
          const [held] = server.requests
          if (held !== undefined) json(200, pod("a", "1"))(held)
          yield* Fiber.join(first)
          assert.strictEqual((yield* Fiber.join(waiting)).message, "not sent: the lease has expired")
          assert.strictEqual(server.requests.length, 1)
          may = true
          yield* fenced.mergePatch(Pod, "a", "default", {})
          assert.deepStrictEqual(
            server.requests.map(({ method }) => method),
            ["GET", "PATCH"]
          )
        }),
      { connections: 1 }
    )
  )

  it.live("rotated credentials are used after a rejection", () =>
    against([status(401, "Unauthorized", "expired"), json(200, pod("a", "1"))], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        assert.isTrue(Option.isSome(yield* client.get(Pod, "a", "default")))
        assert.strictEqual(server.requests.length, 2)
      })
    )
  )
})
