import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Ids } from "@seatrial/domain"
import type { KubeObject, Reflector } from "@seatrial/kube"
import { Node, Pod } from "@seatrial/kube"
import { ApiKeys, Deployments, GpuHolds, Organizations } from "@seatrial/store"
import { layerTestDatabase, makeCaller, newModel } from "@seatrial/store/testing"
import { Effect, Layer, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { inject } from "vitest"
import type { Cluster } from "../../src/gather/Cluster.ts"
import { makeGpuLedger } from "../../src/gather/capacity/GpuLedger.ts"
import { makeReferenceLedger } from "../../src/gather/references/ReferenceLedger.ts"
import { makeHoldKeeper } from "../../src/gpu/keepHolds.ts"
import { HostClassResource } from "../../src/resources/HostClassResource.ts"

const layerStore = Layer.mergeAll(GpuHolds.layerSql, Deployments.layerSql, Organizations.layerSql, ApiKeys.layerSql).pipe(
  Layer.provideMerge([Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer])
)

const start = Date.parse("2026-03-01T23:59:00Z")
const iso = (at: number) => new Date(at).toISOString()

/** A cache with the objects of a test. */
const cacheOf = <A extends KubeObject>() => {
  const objects = new Map<string, A>()
  const reflector: Reflector<A> = {
    get: (name) => Effect.sync(() => Option.fromUndefinedOr(objects.get(name))),
    list: () => Effect.sync(() => [...objects.values()]),
    listByLabel: () => Effect.sync(() => [...objects.values()]),
    listBy: () => Effect.sync(() => [...objects.values()]),
    changes: Stream.never,
    synced: Effect.void
  }
  return { objects, reflector }
}

interface Truth {
  readonly uid: string
  readonly name: string
  placedAt: number | null
  /** When its containers ended, if it reports that. */
  finishedAt: number | null
  goneAt: number | null
  /** Whether an operator ever observed it with its GPUs. */
  seen: boolean
  /** Whether an operator observed the end of its containers, and lived. */
  endSeen: boolean
  /** Since when an operator has observed its node as unresponsive. */
  lostAt: number | null
  /** The last time at which an operator observed and recorded that it held its GPUs. */
  provenAt: number
}

const nodeName = "node-1"
const decodePod = Schema.decodeUnknownSync(Pod.schema)
const decodeNode = Schema.decodeUnknownSync(Node.schema)
const decodeClass = Schema.decodeUnknownSync(HostClassResource.schema)
const hostClass = decodeClass({
  metadata: { name: "local" },
  spec: { runtimes: [{ runtime: "reference", image: "a:1" }], gpuPool: "simulated", gpuCount: 2, gpuMemoryBytes: 1, pricePerGpuHour: "3600000" }
})

const Step = Schema.Literals(["live", "live", "live", "live", "pass", "pass", "look", "remove", "silence", "recover", "crash", "die"])
const Script = Schema.Array(
  Schema.Struct({
    step: Step,
    pod: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    seconds: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 }))
  })
).check(Schema.isMinLength(20), Schema.isMaxLength(60))

let scripts = 0

layer(layerStore, { excludeTestServices: true })("GPU holds of a cluster", (it) => {
  it.effect("report an engine that ends at every start, until it is ready, also to an operator that takes over", () =>
    Effect.gen(function* () {
      const { caller } = yield* makeCaller("failing")
      const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
      const shown = cacheOf<Pod>()
      const unused = cacheOf<never>().reflector
      const cluster: Cluster = {
        namespace: "seatrial",
        deployments: { ...unused, mayShow: () => Effect.succeed(false) },
        unmapped: { get: () => Option.none(), changes: Stream.never },
        jobs: unused,
        budgets: unused,
        pods: shown.reflector,
        nodes: cacheOf<Node>().reflector,
        hostClasses: cacheOf<HostClassResource>().reflector,
        ledger: makeGpuLedger(),
        referenceJobs: makeReferenceLedger(),
        gonePods: new Map(),
        countsAllPods: false,
        otherPods: Stream.never
      }
      const labels = { "seatrial.dev/role": "engine", "seatrial.dev/deployment": id, "seatrial.dev/organization": "failing" }
      const show = (ready: boolean) =>
        shown.objects.set(
          "failing-pod",
          decodePod({
            metadata: { name: "failing-pod", uid: "failing-uid", namespace: "seatrial", creationTimestamp: iso(start), labels },
            spec: { nodeName, containers: [{ name: "engine" }] },
            status: {
              conditions: [{ type: "Ready", status: ready ? "True" : "False", lastTransitionTime: iso(start) }],
              containerStatuses: [
                {
                  name: "engine",
                  ready,
                  restartCount: 2,
                  state: ready ? { running: { startedAt: iso(start) } } : { waiting: { reason: "CrashLoopBackOff", message: "back-off 40s restarting" } },
                  lastState: { terminated: { exitCode: 1, startedAt: iso(start + 1_000), finishedAt: iso(start + 2_000) } }
                }
              ]
            }
          })
        )
      const failing = Effect.map(
        Effect.flatMap(GpuHolds, ({ open }) => open),
        (all) => all.find(({ podUid }) => podUid === "failing-uid")?.failing
      )
      show(false)
      const first = yield* makeHoldKeeper(cluster)
      yield* first.pass("failing-pod")
      assert.deepStrictEqual(yield* failing, { ends: 3, nextStartAt: start + 42_000 })
      const next = yield* makeHoldKeeper(cluster)
      show(true)
      yield* next.pass("failing-pod")
      assert.isNull(yield* failing)
    })
  )

  it.effect.prop(
    "are recorded once and never for longer than they lasted, whatever happens and wherever the operator dies",
    [Script],
    ([script]) =>
      Effect.gen(function* () {
        scripts += 1
        const prefix = `s${scripts}`
        const sql = yield* PgClient.PgClient
        const store = yield* GpuHolds
        const { caller } = yield* makeCaller(`holder-${scripts}`)
        const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
        yield* sql`DELETE FROM gpu_looks`
        yield* sql`UPDATE gpu_holds SET released_at = placed_at WHERE released_at IS NULL`

        let now = start
        let silentSince: number | null = null
        const truths: Array<Truth> = []
        const current = new Map<number, Truth>()
        const shown = cacheOf<Pod>()
        const nodes = cacheOf<Node>()
        const classes = cacheOf<HostClassResource>()
        classes.objects.set("local", hostClass)
        let gonePods = new Map<string, Pod>()
        const showNode = () =>
          nodes.objects.set(
            nodeName,
            decodeNode({
              metadata: { name: nodeName },
              status: { conditions: [{ type: "Ready", status: silentSince === null ? "True" : "Unknown", lastTransitionTime: iso(silentSince ?? start) }] }
            })
          )
        showNode()

        const podOf = (truth: Truth) =>
          decodePod({
            metadata: {
              name: truth.name,
              uid: truth.uid,
              namespace: "seatrial",
              creationTimestamp: iso(start),
              labels: {
                "seatrial.dev/role": "engine",
                "seatrial.dev/deployment": id,
                "seatrial.dev/host-class": "local",
                "seatrial.dev/organization": `holder-${scripts}`
              },
              ...(truth.finishedAt === null ? {} : { deletionTimestamp: iso(truth.finishedAt + 30_000) })
            },
            spec: {
              containers: [{ name: "engine", resources: { limits: { "nvidia.com/gpu": "2" } } }],
              ...(truth.placedAt === null ? {} : { nodeName })
            },
            status: {
              phase: "Running",
              conditions: truth.placedAt === null ? [] : [{ type: "PodScheduled", status: "True", lastTransitionTime: iso(truth.placedAt) }],
              containerStatuses: [
                {
                  name: "engine",
                  ready: false,
                  restartCount: 0,
                  state: truth.finishedAt === null ? { running: {} } : { terminated: { exitCode: 0, finishedAt: iso(truth.finishedAt) } }
                }
              ]
            }
          })
        const show = (truth: Truth) => shown.objects.set(truth.name, podOf(truth))

        // The number of writes until the operator dies behind one. It never learns whether that write was made.
        let writesLeft = Number.POSITIVE_INFINITY
        const dying = <A>(write: Effect.Effect<A>) =>
          Effect.flatMap(write, (value) => (--writesLeft < 0 ? Effect.die("the operator died") : Effect.succeed(value)))
        const mortal = GpuHolds.of({
          ...store,
          place: (placement) => dying(store.place(placement)),
          silent: (uid, since) => dying(store.silent(uid, since)),
          failing: (uid, failed) => dying(store.failing(uid, failed)),
          release: (uid, at) => dying(store.release(uid, at))
        })
        const unused = cacheOf<never>().reflector
        const begin = () => {
          gonePods = new Map()
          const cluster: Cluster = {
            namespace: "seatrial",
            deployments: { ...unused, mayShow: () => Effect.succeed(false) },
            unmapped: { get: () => Option.none(), changes: Stream.never },
            jobs: unused,
            budgets: unused,
            pods: shown.reflector,
            nodes: nodes.reflector,
            hostClasses: classes.reflector,
            ledger: makeGpuLedger(),
            referenceJobs: makeReferenceLedger(),
            gonePods,
            countsAllPods: false,
            otherPods: Stream.never
          }
          return makeHoldKeeper(cluster).pipe(Effect.provideService(GpuHolds, mortal))
        }
        let keeper = yield* begin()
        let up = true

        const markSeen = () => {
          for (const truth of current.values()) {
            if (truth.placedAt !== null) truth.seen = true
            if (truth.finishedAt !== null) truth.endSeen = true
            else if (truth.placedAt !== null && silentSince !== null) truth.lostAt = Math.max(truth.placedAt, silentSince)
          }
        }
        /** A pass over everything, as after a start; false if the operator died in it. */
        const passAll = Effect.gen(function* () {
          const names = new Set([...truths.map(({ name }) => name), ...keeper.held().map(({ pod }) => pod)])
          return yield* Effect.forEach(names, keeper.pass, { discard: true }).pipe(
            Effect.as(true),
            Effect.catchDefect(() => Effect.succeed(false))
          )
        })
        const pass = Effect.gen(function* () {
          if (!up) {
            writesLeft = Number.POSITIVE_INFINITY
            keeper = yield* begin()
            up = true
          }
          const leaving = [...gonePods.keys()]
          up = yield* passAll
          if (up) {
            markSeen()
            for (const each of truths) if (each.finishedAt !== null && leaving.includes(each.uid)) each.endSeen = true
          }
          return up
        })

        for (const { pod: index, seconds, step } of script) {
          now += seconds * 1_000
          yield* TestClock.setTime(now)
          const truth = current.get(index)
          if (step === "live" && truth === undefined) {
            const truth: Truth = {
              uid: `${prefix}-${truths.length}`,
              name: `${prefix}-pod-${index}`,
              placedAt: null,
              finishedAt: null,
              goneAt: null,
              seen: false,
              endSeen: false,
              lostAt: null,
              provenAt: 0
            }
            truths.push(truth)
            current.set(index, truth)
            show(truth)
          } else if (step === "live" && truth?.placedAt === null && silentSince === null) {
            truth.placedAt = now
            show(truth)
          } else if (step === "live" && truth !== undefined && truth.placedAt !== null && truth.finishedAt === null && silentSince === null) {
            truth.finishedAt = now
            show(truth)
          } else if (step === "remove" && truth !== undefined) {
            truth.goneAt = now
            shown.objects.delete(truth.name)
            if (up) gonePods.set(truth.uid, podOf(truth))
            current.delete(index)
          } else if (step === "silence" && silentSince === null) {
            silentSince = now
            showNode()
          } else if (step === "recover") {
            silentSince = null
            for (const each of current.values()) each.lostAt = null
            showNode()
          } else if (step === "pass") {
            yield* pass
          } else if (step === "look" && (yield* pass)) {
            yield* store.recordObservation
            for (const each of current.values()) if (each.placedAt !== null && each.finishedAt === null && silentSince === null) each.provenAt = now
          } else if (step === "crash") {
            writesLeft = seconds % 3
          } else if (step === "die") up = false
        }
        // At the end all pods go, and an operator runs until everything is recorded.
        for (const truth of current.values()) {
          truth.goneAt = now
          shown.objects.delete(truth.name)
          if (up) gonePods.set(truth.uid, podOf(truth))
        }
        current.clear()
        while (!(yield* pass));
        yield* pass

        const rows = yield* sql<{ uid: string; placed: Date; released: Date | null; micros: bigint; gpus: number }>`
          SELECT pod_uid AS uid, placed_at AS placed, released_at AS released, price_micros_per_gpu_hour AS micros, gpus FROM gpu_holds WHERE deployment_id = ${id}`
        const byUid = new Map(rows.map((row) => [row.uid, row]))
        for (const truth of truths) {
          const row = byUid.get(truth.uid)
          byUid.delete(truth.uid)
          if (truth.placedAt === null) {
            assert.isUndefined(row)
            continue
          }
          if (row === undefined) {
            // Only a pod that appeared and went while no operator was running, or before its record was written, is
            // unknown.
            assert.isFalse(truth.seen, `${truth.uid} was seen, and is lost`)
            continue
          }
          assert.deepStrictEqual([row.gpus, row.micros], [2, 3_600_000n])
          assert.strictEqual(row.placed.getTime(), truth.placedAt)
          const released = row.released?.getTime() ?? Number.NaN
          assert.isAtMost(released, truth.finishedAt ?? truth.lostAt ?? truth.goneAt ?? 0, `${truth.uid} counts for longer than it was`)
          if (truth.endSeen) assert.strictEqual(released, truth.finishedAt)
          assert.isAtLeast(released, Math.max(truth.placedAt, truth.provenAt), `${truth.uid} counts for less than was seen`)
        }
        assert.strictEqual(byUid.size, 0)
      }).pipe(Effect.provide(TestClock.layer())),
    { arbitrary: { runs: 50 }, timeout: 120_000 }
  )
})
