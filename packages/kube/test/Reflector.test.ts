import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Option, Queue, Stream } from "effect"
import { fromKey, Pod, Reflector, toKey } from "../src/index.ts"
import { added, against, line, page, pod, status, unreadable, watchedUntilEnd, watchedUntilReset, watching } from "./ApiServer.ts"

const names = (pods: ReadonlyArray<Pod>) => pods.map((each) => each.metadata.name).sort()

describe("Reflector", () => {
  it.live("has every object after the sync, by name, as a list and by label", () =>
    against([page([pod("a", "1", { labels: { app: "x" } }), pod("b", "2", { labels: { app: "y" } })], "5"), watching()], () =>
      Effect.gen(function* () {
        const pods = yield* Reflector.make(Pod, {}, { indexLabels: ["app"] })
        yield* pods.synced
        assert.strictEqual(Option.getOrThrow(yield* pods.get("a", "default")).metadata.uid, "uid-a")
        assert.isTrue(Option.isNone(yield* pods.get("a", "other")))
        assert.deepStrictEqual(names(yield* pods.list()), ["a", "b"])
        assert.deepStrictEqual(names(yield* pods.listByLabel("app", "y")), ["b"])
      })
    )
  )

  it.live("after a gap, emits exactly the objects that were deleted, added or changed during it", () =>
    against(
      [
        page([pod("kept", "1"), pod("gone", "2"), pod("changed", "3")], "5"),
        status(410, "Expired", "too old"),
        page([pod("kept", "1"), pod("changed", "8"), pod("new", "9")], "10"),
        watching()
      ],
      (server) =>
        Effect.gen(function* () {
          const gap = yield* Deferred.make<void>()
          const [, expired] = server.script
          server.script[1] = (exchange) => {
            Effect.runFork(
              Effect.andThen(
                Deferred.await(gap),
                Effect.sync(() => expired?.(exchange))
              )
            )
          }
          const pods = yield* Reflector.make(Pod, {})
          const keys = yield* Queue.unbounded<string>()
          yield* pods.changes.pipe(
            Stream.runForEach((key) => Queue.offer(keys, key)),
            Effect.forkScoped
          )
          assert.deepStrictEqual([...(yield* Queue.takeN(keys, 3))].sort(), ["default/changed", "default/gone", "default/kept"])
          yield* Deferred.succeed(gap, undefined)
          assert.deepStrictEqual([...(yield* Queue.takeN(keys, 3))].sort(), ["default/changed", "default/gone", "default/new"])
          assert.strictEqual(yield* Queue.size(keys), 0)
          assert.deepStrictEqual(names(yield* pods.list()), ["changed", "kept", "new"])
        })
    )
  )

  it.live("follows changes and deletions, including its label index", () =>
    against(
      [
        page([pod("a", "1", { labels: { app: "x" } })], "5"),
        watching(
          line("MODIFIED", pod("a", "6", { labels: { app: "y" } })),
          line("ADDED", pod("b", "7", { labels: { app: "y" } })),
          line("DELETED", pod("a", "8")),
          added("end", "9")
        )
      ],
      () =>
        Effect.gen(function* () {
          const pods = yield* Reflector.make(Pod, {}, { indexLabels: ["app"] })
          yield* pods.changes.pipe(
            Stream.takeUntil((key) => key === "default/end"),
            Stream.runDrain
          )
          assert.deepStrictEqual(names(yield* pods.listByLabel("app", "x")), [])
          assert.deepStrictEqual(names(yield* pods.listByLabel("app", "y")), ["b"])
          assert.deepStrictEqual(names(yield* pods.listByLabel("none", "y")), [])
        })
    )
  )

  it.live("an unreadable object is not a deletion: its last valid state stays, across relists, until it is readable, replaced or deleted", () =>
    against(
      [
        page([pod("a", "1"), pod("b", "2"), pod("c", "3")], "5"),
        watchedUntilReset(line("MODIFIED", unreadable("a", "6"))),
        status(410, "Expired", "too old"),
        // `c` is another object of the same name, and `never` was never in the cache.
        page([unreadable("a", "6"), unreadable("b", "7"), unreadable("c", "8", { uid: "another" }), unreadable("never", "9")], "10"),
        watching(added("relisted", "11"))
      ],
      (server) =>
        Effect.gen(function* () {
          const gone: Array<string> = []
          const pods = yield* Reflector.make(Pod, {}, { onGone: ({ metadata }) => gone.push(metadata.name) })
          const keys = yield* Queue.unbounded<string>()
          const cached = (key: string) =>
            Effect.gen(function* () {
              while ((yield* Queue.take(keys)) !== key);
            })
          yield* pods.changes.pipe(
            Stream.runForEach((key) => Queue.offer(keys, key)),
            Effect.forkScoped
          )
          yield* cached("default/relisted")
          assert.deepStrictEqual(names(yield* pods.list()), ["a", "b", "relisted"])
          assert.deepStrictEqual(gone, ["c"])
          assert.strictEqual(Option.getOrThrow(yield* pods.get("a", "default")).metadata.resourceVersion, "1")
          const { response } = yield* server.request(5)
          response.write(line("MODIFIED", pod("a", "12")) + line("DELETED", unreadable("b", "13")))
          yield* cached("default/b")
          assert.deepStrictEqual(names(yield* pods.list()), ["a", "relisted"])
          assert.strictEqual(Option.getOrThrow(yield* pods.get("a", "default")).metadata.resourceVersion, "12")
          assert.deepStrictEqual(gone, ["c", "b"])
        })
    )
  )

  it.live("a key that changes several times before it is consumed appears once", () => {
    const changes = Array.from({ length: 1000 }, (_, at) => line("MODIFIED", pod("a", `${at + 10}`)))
    return against([page([pod("a", "1")], "5"), watchedUntilEnd(...changes, added("end", "2000")), watching()], (server) =>
      Effect.gen(function* () {
        const pods = yield* Reflector.make(Pod, {})
        const first = yield* Deferred.make<void>()
        const keys: Array<string> = []
        const slow = yield* pods.changes.pipe(
          Stream.takeUntil((key) => key === "default/end"),
          Stream.runForEach((key) =>
            Effect.gen(function* () {
              keys.push(key)
              yield* Deferred.succeed(first, undefined)
              yield* server.request(3)
            })
          ),
          Effect.forkScoped
        )
        yield* Deferred.await(first)
        yield* Fiber.join(slow)
        assert.isAtMost(keys.length, 3)
      })
    )
  })

  it.live("reports a denial instead of waiting forever", () =>
    against([status(403, "Forbidden", "no")], () =>
      Effect.gen(function* () {
        const pods = yield* Reflector.make(Pod, {})
        assert.strictEqual((yield* Effect.flip(pods.synced)).reason, "Denied")
        assert.strictEqual((yield* Effect.flip(Stream.runDrain(pods.changes))).reason, "Denied")
      })
    )
  )

  it("a key identifies its object, with and without a namespace", () => {
    assert.deepStrictEqual(fromKey(toKey("a", "default")), { name: "a", namespace: "default" })
    assert.deepStrictEqual(fromKey(toKey("node-1")), { name: "node-1" })
  })
})
