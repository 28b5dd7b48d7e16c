import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Metric, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { KubeClient, Pod } from "../src/index.ts"
import { type Answer, added, against, line, page, pod, watching } from "./ApiServer.ts"
import { formatEvent, watchFor } from "./watchFor.ts"

describe("the connection of a watch", () => {
  it.live("an interrupted watch closes its socket", () =>
    against([page([], "5"), watching(added("a", "6"))], (server) =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const events = yield* Queue.unbounded<string>()
        const fiber = yield* client.watch(Pod, {}).pipe(
          Stream.runForEach((event) => Queue.offer(events, formatEvent(event))),
          Effect.forkChild
        )
        yield* Queue.takeN(events, 2)
        const { socket } = yield* server.request(2)
        yield* Fiber.interrupt(fiber)
        yield* server.until(() => socket.destroyed)
      })
    )
  )

  it.live("a watch interrupted during its list never opens", () =>
    against([], (server) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(watchFor(1))
        const list = yield* server.request(1)
        yield* Fiber.interrupt(fiber)
        page([], "5")(list)
        yield* server.until(() => server.sockets.size === 0)
        assert.strictEqual(server.requests.length, 1)
      })
    )
  )

  it.live("a slow consumer blocks the server instead of filling memory, and loses nothing", () => {
    const total = 400
    const padding = "x".repeat(200_000)
    let written = 0
    const flood: Answer = ({ response }) => {
      response.writeHead(200)
      const next = () => {
        while (written < total) {
          written += 1
          if (!response.write(line("ADDED", pod(`p${written}`, `${written + 5}`, { annotations: { padding } })))) return void response.once("drain", next)
        }
      }
      next()
    }
    return against([page([], "5"), flood], () =>
      Effect.gen(function* () {
        const client = yield* KubeClient
        const first = yield* Deferred.make<void>()
        const go = yield* Deferred.make<void>()
        const names: Array<string> = []
        const fiber = yield* client.watch(Pod, {}).pipe(
          Stream.filter((event) => event._tag === "Changed"),
          Stream.take(total),
          Stream.runForEach((event) =>
            Effect.gen(function* () {
              yield* Deferred.succeed(first, undefined)
              yield* Deferred.await(go)
              names.push(event.object.metadata.name)
            })
          ),
          Effect.forkChild
        )
        yield* Deferred.await(first)
        // Both ends run in this event loop. When its turns move no more data, the kernel's buffers are full; 80 MB do
        // not fit into them.
        let lastCount = -1
        for (let quiet = 0; quiet < 200; ) {
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
          quiet = written === lastCount ? quiet + 1 : 0
          lastCount = written
        }
        assert.isBelow(written, total)
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(
          names,
          Array.from({ length: total }, (_, at) => `p${at + 1}`)
        )
      })
    )
  })

  it.effect("reports the time since the last data from the server, and removes the metric when it ends", () =>
    against(
      [page([], "5"), watching()],
      (server) =>
        Effect.gen(function* () {
          const age = Effect.map(Metric.snapshot, (all) => all.find(({ id }) => id === "seatrial_kube_watch_last_event_age_seconds"))
          const fiber = yield* Effect.forkChild(watchFor(2))
          yield* server.request(2)
          yield* TestClock.adjust("40 seconds")
          const currentAge = yield* age
          assert.strictEqual(currentAge?.type === "Gauge" ? currentAge.state.value : undefined, 40)
          assert.strictEqual(currentAge?.attributes?.resource, "pods")
          yield* Fiber.interrupt(fiber)
          assert.isUndefined(yield* age)
        }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
      { requestTimeout: "30 days", watchIdle: "30 days" }
    )
  )
})
