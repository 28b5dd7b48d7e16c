import { assert, it } from "@effect/vitest"
import { Ids, OrgId, RevisionId } from "@seatrial/domain"
import { Routes, type UnprovenEndpoint } from "@seatrial/store"
import { Effect, Layer, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { EngineClient, EngineUnreachable } from "../src/EngineClient.ts"
import { EngineAnswer } from "../src/engine/EngineAnswer.ts"
import { layerReachability } from "../src/layerReachability.ts"
import { soon } from "./stage.ts"

const answer = (statusCode: number) => {
  const answer = new EngineAnswer(statusCode, { pause: () => {}, resume: () => {}, hangUp: () => {} })
  answer.finish()
  return answer
}

/** The outcomes of a probe, and of the statement that records it. */
const makeWorld = Effect.gen(function* () {
  const ids = yield* Ids
  const revisionId = yield* ids.make(RevisionId)
  const orgId = yield* ids.make(OrgId)
  const endpoint = (name: string): UnprovenEndpoint => ({ orgId, revisionId, runtime: "reference", url: `http://${name}`, pod: name })
  const snapshots = yield* Queue.unbounded<ReadonlyArray<UnprovenEndpoint>>()
  const world = { probes: new Map<string, number>(), proven: [] as string[], status: new Map<string, number>(), storeIsAway: false, marks: 0 }
  const layerWorld = Layer.mergeAll(
    Layer.mock(Routes)({
      known: () => undefined,
      ofModel: () => undefined,
      unproven: Stream.fromQueue(snapshots),
      markReachable: ({ pod }) =>
        Effect.suspend(() => {
          world.marks++
          if (world.storeIsAway) return Effect.die(new Error("away"))
          return Effect.sync(() => void world.proven.push(pod))
        })
    }),
    Layer.succeed(
      EngineClient,
      EngineClient.of({
        call: ({ url }) =>
          Effect.suspend(() => {
            const pod = url.slice("http://".length)
            world.probes.set(pod, (world.probes.get(pod) ?? 0) + 1)
            const status = world.status.get(pod)
            return status === undefined ? Effect.fail(new EngineUnreachable({ reason: "refused" })) : Effect.succeed(answer(status))
          })
      })
    )
  )
  yield* Layer.build(layerReachability.pipe(Layer.provide(layerWorld)))
  const askedOf = (pod: string) => world.probes.get(pod) ?? 0
  /** Advances the clock until the condition holds. */
  const later = Effect.fnUntraced(function* (condition: () => boolean) {
    while (!condition()) {
      yield* TestClock.adjust("1 second")
      yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))
    }
  })
  return { world, endpoint, askedOf, later, tell: (...endpoints: ReadonlyArray<UnprovenEndpoint>) => Queue.offer(snapshots, endpoints) }
})

it.effect("an endpoint is probed until it answers, and a failure to record that is repeated", () =>
  Effect.gen(function* () {
    const { askedOf, endpoint, later, tell, world } = yield* makeWorld
    yield* tell(endpoint("late"))
    yield* later(() => askedOf("late") === 100)
    world.status.set("late", 503)
    yield* later(() => askedOf("late") === 120)
    world.storeIsAway = true
    world.status.set("late", 200)
    yield* later(() => world.marks === 3)
    assert.deepStrictEqual(world.proven, [])
    world.storeIsAway = false
    yield* later(() => world.proven.length > 0)
    const probes = askedOf("late")
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual([world.proven, askedOf("late")], [["late"], probes])
  }).pipe(Effect.scoped, Effect.provide(Ids.layer))
)

it.effect("many endpoints that never answer do not delay others, and withdrawn endpoints are not probed", () =>
  Effect.gen(function* () {
    const { askedOf, endpoint, later, tell, world } = yield* makeWorld
    const dead = Array.from({ length: 40 }, (_, index) => endpoint(`dead-${index}`))
    yield* tell(...dead)
    yield* later(() => dead.every(({ pod }) => askedOf(pod) > 20))
    world.status.set("healthy", 200)
    yield* tell(...dead, endpoint("healthy"))
    yield* soon(() => world.proven.includes("healthy"))
    const [kept, ...withdrawn] = dead
    if (kept === undefined) return assert.fail()
    yield* tell(kept)
    const before = askedOf(kept.pod)
    yield* later(() => askedOf(kept.pod) > before + 2)
    const counts = withdrawn.map(({ pod }) => askedOf(pod))
    yield* later(() => askedOf(kept.pod) > before + 10)
    assert.deepStrictEqual(
      withdrawn.map(({ pod }) => askedOf(pod)),
      counts
    )
  }).pipe(Effect.scoped, Effect.provide(Ids.layer))
)
