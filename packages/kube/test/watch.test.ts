import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Answer, added, against, bookmark, line, page, pod, reset, status, unreadable, watchedUntilEnd, watchedUntilReset, watching } from "./ApiServer.ts"
import { watchFor } from "./watchFor.ts"

const tooOld = { kind: "Status", status: "Failure", code: 410, reason: "Expired", message: "too old resource version" }

describe("watch", () => {
  it.live("lists first, then emits each change", () =>
    against([page([pod("a", "1")], "5"), watching(added("b", "6"), line("MODIFIED", pod("a", "7")), line("DELETED", pod("b", "8")))], (server) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(4), ["Synced a", "Changed b", "Changed a", "Removed b"])
        const query = server.requests[1]?.query
        assert.deepStrictEqual([query?.get("watch"), query?.get("resourceVersion"), query?.get("allowWatchBookmarks")], ["true", "5", "true"])
        const seconds = Number(query?.get("timeoutSeconds"))
        assert.isTrue(seconds >= 300 && seconds <= 600)
      })
    )
  )

  it.live("continues from the last bookmark without another list when the server ends the watch", () =>
    against([page([], "5"), watchedUntilEnd(added("a", "6"), bookmark("400")), watching(added("b", "401"))], (server) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(3), ["Synced ", "Changed a", "Changed b"])
        assert.strictEqual(server.requests[2]?.query.get("resourceVersion"), "400")
      })
    )
  )

  it.live("emits an event that is split over many packets, and many events in one packet", () => {
    const bytes = Buffer.from(added("ünïcode", "6") + added("b", "7") + added("c", "8"))
    const dribble: Answer = ({ response }) => {
      response.writeHead(200)
      const next = (at: number) => {
        if (at < bytes.length) response.write(bytes.subarray(at, at + 7), () => next(at + 7))
      }
      next(0)
    }
    return against([page([], "5"), dribble], () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(4), ["Synced ", "Changed ünïcode", "Changed b", "Changed c"])
      })
    )
  })

  it.live("a reset connection is reopened from the last event", () =>
    against([page([], "5"), watchedUntilReset(added("a", "6")), watching(added("b", "7"))], (server) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(3), ["Synced ", "Changed a", "Changed b"])
        assert.strictEqual(server.requests[2]?.query.get("resourceVersion"), "6")
      })
    )
  )

  it.live("a list and a watch that fail temporarily are retried until they succeed", () =>
    against(
      [
        reset,
        status(500, "InternalError", "etcd has no leader"),
        page([pod("a", "1")], "5"),
        status(503, "ServiceUnavailable", "starting"),
        reset,
        status(429, "TooManyRequests", "wait", { "retry-after": "0" }),
        watching(added("b", "6"))
      ],
      (server) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* watchFor(2), ["Synced a", "Changed b"])
          assert.deepStrictEqual(
            server.requests.map((each) => (each.isWatch ? each.query.get("resourceVersion") : "list")),
            ["list", "list", "list", "5", "5", "5", "5"]
          )
        })
    )
  )

  it.effect("waits as long as Retry-After requires, even if its own back-off is shorter", () =>
    against(
      [status(429, "TooManyRequests", "wait", { "retry-after": "7" }), page([], "5"), watching()],
      (server) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(watchFor(1))
          yield* server.request(1)
          while (server.requests.length < 2) {
            yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
            yield* TestClock.adjust("100 millis")
          }
          assert.isAtLeast(yield* Clock.currentTimeMillis, 7000)
          assert.deepStrictEqual(yield* Fiber.join(fiber), ["Synced "])
        }),
      { requestTimeout: "30 days", watchIdle: "30 days" }
    )
  )

  it.live("410 as a status causes a new list", () =>
    against([page([pod("a", "1")], "5"), status(410, "Expired", "too old"), page([pod("b", "8")], "9"), watching(added("c", "10"))], (server) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(3), ["Synced a", "Synced b", "Changed c"])
        assert.strictEqual(server.requests[3]?.query.get("resourceVersion"), "9")
      })
    )
  )

  it.live("410 inside an open stream causes a new list immediately and closes the stream", () =>
    against([page([], "5"), watching(added("a", "6") + line("ERROR", tooOld)), page([pod("b", "8")], "9"), watching(added("c", "10"))], (server) =>
      Effect.gen(function* () {
        const old = yield* Effect.forkChild(Effect.flatMap(server.request(2), ({ socket }) => server.until(() => socket.destroyed)))
        assert.deepStrictEqual(yield* watchFor(4), ["Synced ", "Changed a", "Synced b", "Changed c"])
        yield* Fiber.join(old)
      })
    )
  )

  it.live("another error inside the stream also causes a new list", () =>
    against(
      [
        page([], "5"),
        watching(line("ERROR", { kind: "Status", code: 500, message: "etcd event received with PrevKv=nil" })),
        page([pod("b", "8")], "9"),
        watching()
      ],
      () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* watchFor(2), ["Synced ", "Synced b"])
        })
    )
  )

  it.live("an event that does not match the schema, or is not JSON, does not end the stream", () =>
    against(
      [
        page([], "5"),
        watching(line("ADDED", { metadata: { name: "x", resourceVersion: "6" }, spec: 1 }), added("a", "7"), "{not json\n"),
        watching(added("b", "8"))
      ],
      (server) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* watchFor(3), ["Synced ", "Changed a", "Changed b"])
          assert.strictEqual(server.requests[2]?.query.get("resourceVersion"), "7")
        })
    )
  )

  it.live("the deletion of an unreadable object is emitted", () =>
    against([page([pod("a", "1")], "5"), watching(line("MODIFIED", unreadable("a", "6")), line("DELETED", unreadable("a", "7")))], () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(2), ["Synced a", "RemovedUnreadable default/a"])
      })
    )
  )

  it.effect("a watch without data is reopened", () =>
    against(
      [page([], "5"), watching(added("a", "6")), watching(added("b", "7"))],
      (server) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(watchFor(3))
          yield* server.request(2)
          // Far more turns than the sent lines need to arrive.
          while (server.requests.length < 3) {
            yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
            yield* TestClock.adjust("100 millis")
          }
          assert.deepStrictEqual(yield* Fiber.join(fiber), ["Synced ", "Changed a", "Changed b"])
          assert.strictEqual(server.requests[2]?.query.get("resourceVersion"), "6")
        }),
      { requestTimeout: "30 days", watchIdle: "1 minute" }
    )
  )

  it.live("a full list is repeated after its period, so that a missed event is corrected", () =>
    against(
      [page([], "5"), watchedUntilEnd(added("a", "6")), page([pod("a", "6"), pod("missed", "3")], "7"), watching()],
      () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* watchFor(3), ["Synced ", "Changed a", "Synced a,missed"])
        }),
      { relistEvery: 0 }
    )
  )

  for (const [code, reason] of [
    [403, "Denied"],
    [404, "NotFound"]
  ] as const) {
    it.live(`fails if the first response is ${code}`, () =>
      against([status(code, "x", "no")], () =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Effect.flip(watchFor(1))).reason, reason)
        })
      )
    )
  }

  it.live("after access was granted once, a denial is retried before the watch fails", () => {
    const denied = status(403, "Forbidden", "no")
    return against([page([], "5"), denied, denied, page([pod("a", "6")], "7"), watching(added("b", "8"))], () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(3), ["Synced ", "Synced a", "Changed b"])
      })
    )
  })

  it.live("a kind that disappears after the first list is awaited", () => {
    const missing = status(404, "NotFound", "no such kind")
    return against([page([pod("a", "5")], "5"), ...Array.from({ length: 8 }, () => missing), page([pod("a", "6")], "7")], () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* watchFor(2), ["Synced a", "Synced a"])
      })
    )
  })

  it.live("a permanent denial fails the watch", () =>
    against([page([], "5")], (server) =>
      Effect.gen(function* () {
        server.fallback = status(403, "Forbidden", "no")
        assert.strictEqual((yield* Effect.flip(watchFor(2))).reason, "Denied")
      })
    )
  )
})
