import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Metric, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { KubeClient, KubeError, Lease, LeaseElection } from "../src/index.ts"
import { type Answer, against, json, status } from "./ApiServer.ts"

const conflict = new KubeError({ reason: "Conflict", message: "the object has been modified", status: 409 })
const away = new KubeError({ reason: "Retryable", message: "connection refused" })

/**
 * Stores one lease with the API server's optimistic locking. `away` makes requests of one candidate fail; `hang` leaves
 * them without a response.
 */
const makeLeases = () => {
  let stored: Lease | undefined
  let version = 0
  const writes: Array<{ readonly holder: string; readonly transitions: number; readonly seconds: number }> = []
  const away_ = new Set<string>()
  const hanging = new Set<string>()

  const save = (lease: Lease) =>
    Effect.sync(() => {
      version += 1
      const { holderIdentity, leaseDurationSeconds, leaseTransitions } = lease.spec ?? {}
      writes.push({ holder: holderIdentity ?? "", transitions: leaseTransitions ?? 0, seconds: leaseDurationSeconds ?? 0 })
      stored = { ...lease, metadata: { ...lease.metadata, uid: "u", resourceVersion: String(version) } }
      return stored
    })

  const decode = Schema.decodeUnknownEffect(Lease.schema)
  const clientOf = (identity: string) => {
    const guard = <A>(call: Effect.Effect<A, KubeError>) =>
      Effect.suspend(() => (hanging.has(identity) ? Effect.never : away_.has(identity) ? Effect.fail(away) : call))
    const put = (object: unknown) =>
      guard(
        Effect.flatMap(Effect.orDie(decode(object)), (lease) =>
          Effect.suspend(() => (stored?.metadata.resourceVersion === lease.metadata.resourceVersion ? save(lease) : Effect.fail(conflict)))
        )
      )
    return Layer.mock(KubeClient)({
      get: (resource) =>
        guard(
          Effect.suspend(() => (stored === undefined ? Effect.succeedNone : Effect.asSome(Effect.orDie(Schema.decodeUnknownEffect(resource.schema)(stored)))))
        ),
      create: (resource, object) => Effect.flatMap(put(object), (lease) => Effect.orDie(Schema.decodeUnknownEffect(resource.schema)(lease))),
      update: (resource, object) => Effect.flatMap(put(object), (lease) => Effect.orDie(Schema.decodeUnknownEffect(resource.schema)(lease)))
    })
  }
  return {
    writes,
    away: away_,
    hanging,
    clientOf,
    steal: (holderIdentity: string) =>
      Effect.suspend(() => (stored === undefined ? Effect.void : save({ ...stored, spec: { ...stored.spec, holderIdentity } }))),
    stored: () => stored
  }
}

/** Candidates whose work records who leads and when each started and stopped. */
const makeElection = () => {
  const leases = makeLeases()
  const leading = new Set<string>()
  const faults: Array<string> = []
  const log: Array<readonly [what: string, at: number]> = []
  const note = (what: string) => Effect.map(Clock.currentTimeMillis, (now) => log.push([what, now]))
  const work = (identity: string) =>
    Effect.acquireUseRelease(
      Effect.andThen(
        note(`${identity} begins`),
        Effect.sync(() => {
          leading.add(identity)
          if (leading.size > 1) faults.push(`${[...leading].join()} lead at once`)
        })
      ),
      () => Effect.never,
      () =>
        Effect.andThen(
          Effect.sync(() => leading.delete(identity)),
          note(`${identity} stops`)
        )
    )
  const candidate = (identity: string) =>
    LeaseElection.run({ name: "operator", namespace: "seatrial", identity }, work(identity)).pipe(Effect.provide(leases.clientOf(identity)), Effect.forkChild)
  const when = (what: string) => log.find(([each]) => each === what)?.[1]
  return { ...leases, leading, faults, log, candidate, when }
}

describe("LeaseElection", () => {
  it.effect("one of two candidates leads and stays the leader", () =>
    Effect.gen(function* () {
      const election = makeElection()
      yield* election.candidate("one")
      yield* election.candidate("two")
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(election.faults, [])
      assert.strictEqual(election.leading.size, 1)
      assert.strictEqual(election.log.length, 1)
      assert.deepStrictEqual(
        election.writes.filter(({ transitions }) => transitions !== 0),
        []
      )
      assert.match(election.stored()?.spec?.renewTime ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    })
  )

  it.effect("a leader without a connection stops by its deadline, and another starts only after the lease duration has passed", () =>
    Effect.gen(function* () {
      const election = makeElection()
      yield* election.candidate("one")
      yield* TestClock.adjust("1 second")
      yield* election.candidate("two")
      yield* TestClock.adjust("1 minute")
      const cutOff = yield* Clock.currentTimeMillis
      election.away.add("one")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(election.faults, [])
      assert.deepStrictEqual(
        election.log.map(([what]) => what),
        ["one begins", "one stops", "two begins"]
      )
      const stopped = election.when("one stops") ?? 0
      const began = election.when("two begins") ?? 0
      assert.isAtMost(stopped - cutOff, 10_000)
      assert.isAtLeast(began - stopped, 3000)
      assert.strictEqual(election.stored()?.spec?.leaseTransitions, 1)
      election.away.delete("one")
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual([...election.leading], ["two"])
    })
  )

  it.effect("writes after the deadline are not sent, as after a process was suspended", () =>
    Effect.gen(function* () {
      const { away, clientOf } = makeLeases()
      const messages: Array<string> = []
      const write = Effect.gen(function* () {
        const client = yield* KubeClient
        const error = yield* Effect.flip(client.create(Lease, { metadata: { name: "other", namespace: "seatrial" } }))
        messages.push(error.message)
      })
      // Uninterruptible, like a process that has not resumed yet.
      const late = Effect.uninterruptible(Effect.andThen(Effect.andThen(Effect.sleep("5 seconds"), write), Effect.andThen(Effect.sleep("15 seconds"), write)))
      yield* LeaseElection.run({ name: "operator", namespace: "seatrial", identity: "one" }, Effect.orDie(late)).pipe(
        Effect.provide(clientOf("one")),
        Effect.forkChild
      )
      yield* TestClock.adjust("1 second")
      away.add("one")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(messages, ["connection refused", "not sent: the lease has expired"])
    })
  )

  it.effect("a leader whose requests get no response also stops by its deadline", () =>
    Effect.gen(function* () {
      const election = makeElection()
      yield* election.candidate("one")
      yield* TestClock.adjust("1 minute")
      const cutOff = yield* Clock.currentTimeMillis
      election.hanging.add("one")
      yield* TestClock.adjust("1 minute")
      assert.isAtMost((election.when("one stops") ?? Number.POSITIVE_INFINITY) - cutOff, 10_000)
    })
  )

  it.effect("a short outage of the API server changes nothing", () =>
    Effect.gen(function* () {
      const election = makeElection()
      yield* election.candidate("one")
      yield* election.candidate("two")
      yield* TestClock.adjust("1 minute")
      election.away.add("one")
      election.away.add("two")
      yield* TestClock.adjust("5 seconds")
      election.away.clear()
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(election.log.length, 1)
    })
  )

  it.effect("a lease taken by another candidate interrupts the work at the next renewal", () =>
    Effect.gen(function* () {
      const election = makeElection()
      yield* election.candidate("one")
      yield* TestClock.adjust("1 minute")
      yield* election.steal("thief")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(election.leading.size, 0)
      assert.strictEqual(election.stored()?.spec?.holderIdentity, "thief")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([...election.leading], ["one"])
      assert.strictEqual(election.stored()?.spec?.leaseTransitions, 1)
    })
  )

  it.effect("a clean shutdown releases the lease after the work has stopped, and the next candidate starts without waiting for expiry", () =>
    Effect.gen(function* () {
      const election = makeElection()
      const one = yield* election.candidate("one")
      yield* TestClock.adjust("1 second")
      yield* election.candidate("two")
      yield* TestClock.adjust("1 minute")
      yield* Fiber.interrupt(one)
      assert.deepStrictEqual(election.writes.at(-1), { holder: "", transitions: 0, seconds: 1 })
      yield* TestClock.adjust("4400 millis")
      assert.deepStrictEqual([...election.leading], ["two"])
      assert.deepStrictEqual(election.faults, [])
    })
  )

  it.effect("a release without a response does not delay the shutdown", () =>
    Effect.gen(function* () {
      const election = makeElection()
      const one = yield* election.candidate("one")
      yield* TestClock.adjust("1 minute")
      election.hanging.add("one")
      const ended = yield* Effect.forkChild(Fiber.interrupt(one))
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.join(ended)
    })
  )

  it.effect("ends with the result of the work, and reports who leads", () =>
    Effect.gen(function* () {
      const leases = makeLeases()
      const done = yield* Deferred.make<string>()
      const leader = Effect.map(Metric.snapshot, (all) => {
        const gauge = all.find(({ id }) => id === "seatrial_kube_leader")
        return gauge?.type === "Gauge" ? gauge.state.value : undefined
      })
      const fiber = yield* LeaseElection.run({ name: "operator", namespace: "seatrial", identity: "one" }, Deferred.await(done)).pipe(
        Effect.provide(leases.clientOf("one")),
        Effect.forkChild
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* leader, 1)
      yield* Deferred.succeed(done, "finished")
      assert.strictEqual(yield* Fiber.join(fiber), "finished")
      assert.strictEqual(yield* leader, 0)
      assert.strictEqual(leases.stored()?.spec?.holderIdentity, "")
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect.prop(
    "two candidates never lead at the same time under any sequence of failures",
    [Schema.Array(Schema.Struct({ who: Schema.Literals(["one", "two", "three"]), away: Schema.Boolean, seconds: Schema.Literals([1, 3, 8, 12, 20]) }))],
    ([steps]) =>
      Effect.gen(function* () {
        const election = makeElection()
        for (const identity of ["one", "two", "three"]) yield* election.candidate(identity)
        for (const { away: isAway, seconds, who } of steps) {
          if (isAway) election.away.add(who)
          else election.away.delete(who)
          yield* TestClock.adjust(seconds * 1000)
        }
        election.away.clear()
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(election.faults, [])
        assert.strictEqual(election.leading.size, 1)
      }).pipe(Effect.scoped)
  )

  it.live("over the wire: creates the lease, and releases it with the version that it read", () => {
    const echo: Answer = (exchange) => {
      const lease = Option.getOrThrow(Schema.decodeUnknownOption(Schema.fromJsonString(Lease.schema))(exchange.body))
      json(200, { ...lease, metadata: { ...lease.metadata, resourceVersion: "7" } })(exchange)
    }
    return against([status(404, "NotFound", "no lease"), echo, echo], (server) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* LeaseElection.run({ name: "operator", namespace: "seatrial", identity: "one" }, Effect.succeed("ran")), "ran")
        const path = "/apis/coordination.k8s.io/v1/namespaces/seatrial/leases"
        assert.deepStrictEqual(
          server.requests.map((each) => [each.method, each.path]),
          [
            ["GET", `${path}/operator`],
            ["POST", path],
            ["PUT", `${path}/operator`]
          ]
        )
        const released = Schema.decodeUnknownSync(Schema.fromJsonString(Lease.schema))(server.requests[2]?.body)
        assert.deepStrictEqual([released.spec?.holderIdentity, released.metadata.resourceVersion], ["", "7"])
      })
    )
  })
})
