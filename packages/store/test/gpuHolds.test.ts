import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { gpuDays } from "@seatrial/domain"
import { Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Billing, Deployments, GpuHolds, type Placement, Routes, UsageSums } from "../src/index.ts"
import { layerRole, layerStore } from "./stage.ts"
import { makeCaller, makeServing, newModel } from "./support/index.ts"

const at = (iso: string) => Date.parse(iso)
const start = at("2026-03-01T22:00:00Z")

const placement = (deploymentId: Placement["deploymentId"], podUid: string, over: Partial<Placement> = {}): Placement => ({
  podUid,
  pod: `pod-of-${podUid}`,
  deploymentId,
  hostClass: "h100",
  gpus: 2,
  pricePerGpuHour: 2_500_001n,
  placedAt: start,
  ...over
})

const makeRun = Effect.fnUntraced(function* (slug: string) {
  const { caller } = yield* makeCaller(slug)
  const { id } = yield* (yield* Deployments).create(newModel(caller, "k"))
  return { orgId: caller.orgId, id }
})

const services = Layer.mergeAll(GpuHolds.layerSql.pipe(Layer.provide(layerRole("operator"))), Routes.layerSql, Billing.layerSql, UsageSums.layerSql).pipe(
  Layer.provideMerge(layerStore)
)

layer(services, { excludeTestServices: true })("GPU holds", (it) => {
  it.effect("are recorded once even if the write is repeated, at the price of the placement", () =>
    Effect.gen(function* () {
      const holds = yield* GpuHolds
      const { id, orgId } = yield* makeRun("held-once")
      assert.isTrue(yield* holds.place(placement(id, "once")))
      assert.isTrue(yield* holds.place(placement(id, "once", { pricePerGpuHour: 9n, placedAt: start + 5, gpus: 8 })))
      yield* holds.release("once", start + 3_600_000)
      yield* holds.release("once", start + 7_200_000)
      yield* holds.silent("once", start)
      assert.isTrue(yield* holds.place(placement(id, "once")))
      assert.deepStrictEqual(
        (yield* holds.usage(orgId, "2026-03-01", "2026-03-01")).map(({ gpuMillis, micros }) => [gpuMillis, micros]),
        [[7_200_000n, 5_000_002n]]
      )
      assert.isFalse((yield* holds.open).some(({ podUid }) => podUid === "once"))
    })
  )

  it.effect("show the state of a revision's engine: it has GPUs, and whether it exits during every start", () =>
    Effect.gen(function* () {
      const holds = yield* GpuHolds
      const { placedEngine } = yield* Routes
      const { caller } = yield* makeCaller("held-failing")
      const { modelId, operation, revisionId } = yield* makeServing(caller, "k")
      const standing = placedEngine({ orgId: caller.orgId, modelId, revisionId })
      assert.isNull(yield* standing)
      yield* holds.place(placement(operation.id, "failing"))
      assert.deepStrictEqual(yield* standing, { failing: null })
      const failed = { ends: 3, nextStartAt: start + 42_000 }
      yield* holds.failing("failing", failed)
      assert.deepStrictEqual(yield* standing, { failing: failed })
      assert.deepStrictEqual((yield* holds.open).find(({ podUid }) => podUid === "failing")?.failing, failed)
      yield* holds.failing("failing", { ends: 4, nextStartAt: null })
      assert.deepStrictEqual(yield* standing, { failing: { ends: 4, nextStartAt: null } })
      yield* holds.failing("failing", null)
      assert.deepStrictEqual(yield* standing, { failing: null })
      yield* holds.release("failing", start + 1_000)
      assert.isNull(yield* standing)
    })
  )

  it.effect("of a run that the serving revision stopped for show that an engine starts; its failing starts do not concern the callers", () =>
    Effect.gen(function* () {
      const holds = yield* GpuHolds
      const { placedEngine } = yield* Routes
      const { caller } = yield* makeCaller("held-replacing")
      const { modelId, operation, revisionId } = yield* makeServing(caller, "k")
      const { id } = yield* (yield* Deployments).create(newModel(caller, "k2", "", { target: { _tag: "Redeploy", modelId, ref: null } }))
      const standing = placedEngine({ orgId: caller.orgId, modelId, revisionId })
      assert.isNull(yield* standing)
      yield* holds.place(placement(id, "replacing"))
      yield* holds.failing("replacing", { ends: 2, nextStartAt: null })
      assert.deepStrictEqual(yield* standing, { failing: null })
      yield* holds.place(placement(operation.id, "returning"))
      yield* holds.failing("returning", { ends: 1, nextStartAt: null })
      assert.deepStrictEqual(yield* standing, { failing: { ends: 1, nextStartAt: null } })
      const { modelId: other, revisionId: otherRevision } = yield* makeServing(caller, "k3", "other")
      assert.isNull(yield* placedEngine({ orgId: caller.orgId, modelId: other, revisionId: otherRevision }))
    })
  )

  it.effect("are not recorded for an unknown deployment, and not visible to other organizations", () =>
    Effect.gen(function* () {
      const holds = yield* GpuHolds
      const { id } = yield* makeRun("held-a")
      const { orgId: other } = yield* makeRun("held-b")
      yield* holds.place(placement(id, "a"))
      yield* holds.release("a", start + 1_000)
      assert.deepStrictEqual(yield* holds.usage(other, "2026-01-01", "2027-01-01"), [])
    })
  )

  it.effect("of a vanished pod end when its node stopped responding, or else at the last observation", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(start + 60_000)
      const holds = yield* GpuHolds
      const sql = yield* PgClient.PgClient
      const { id } = yield* makeRun("held-lost")
      for (const uid of ["gone", "lost", "well", "early"]) yield* holds.place(placement(id, uid))
      yield* holds.silent("lost", start + 20_000)
      yield* holds.silent("well", start + 20_000)
      yield* holds.silent("well", null)
      yield* holds.recordObservation
      yield* TestClock.adjust("1 hour")
      for (const uid of ["gone", "lost", "well"]) yield* holds.release(uid, null)
      // A hold never ends before its start, even if the pod reports so.
      yield* holds.release("early", start - 5_000)
      const rows =
        yield* sql`SELECT pod_uid AS uid, extract(epoch FROM released_at - placed_at)::int AS seconds FROM gpu_holds WHERE deployment_id = ${id} ORDER BY 1`
      assert.deepStrictEqual<unknown>(rows, [
        { uid: "early", seconds: 0 },
        { uid: "gone", seconds: 60 },
        { uid: "lost", seconds: 20 },
        { uid: "well", seconds: 60 }
      ])
    }).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("of an operator whose clock is ahead are not counted into the future", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.now() + 200 * 86_400_000)
      const sql = yield* PgClient.PgClient
      yield* (yield* GpuHolds).recordObservation
      assert.lengthOf(yield* sql`SELECT FROM gpu_looks WHERE seen_at > clock_timestamp()`, 0)
    }).pipe(Effect.provide(TestClock.layer()))
  )

  const span = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 * 86_400_000 }))
  const Hold = Schema.Struct({
    gpus: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 16 })),
    price: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000_000 })),
    from: span,
    millis: span
  })
  let runs = 0
  it.effect.prop(
    "are counted like the domain's arithmetic, and reduce the balance by the same amount",
    [Schema.Array(Hold).check(Schema.isMaxLength(6))],
    ([given]) =>
      Effect.gen(function* () {
        const holds = yield* GpuHolds
        const billing = yield* Billing
        const sums = yield* UsageSums
        runs += 1
        const { id, orgId } = yield* makeRun(`held-prop-${runs}`)
        for (const [index, { from, gpus, millis, price }] of given.entries()) {
          const podUid = `prop-${runs}-${index}`
          yield* holds.place(placement(id, podUid, { gpus, pricePerGpuHour: BigInt(price), placedAt: start + from }))
          yield* holds.release(podUid, start + from + millis)
        }
        const expected = gpuDays(
          given.map(({ from, gpus, millis, price }) => ({
            gpus,
            pricePerGpuHour: BigInt(price),
            placedAt: start + from,
            releasedAt: start + from + millis
          }))
        )
        const counted = yield* holds.usage(orgId, "2026-01-01", "2027-01-01")
        assert.deepStrictEqual(
          counted.map(({ day, gpuMillis, micros }) => ({ day, gpuMillis: Number(gpuMillis), micros })),
          expected
        )
        const byDay = yield* sums.sums({ orgId, from: "2026-01-01", to: "2027-01-01", by: new Set(["day"]) })
        assert.deepStrictEqual(
          byDay.map(({ day, gpuMicros, gpuMillis, requests }) => ({ day: day ?? "", gpuMillis: Number(gpuMillis), micros: gpuMicros, requests })),
          expected.map((row) => ({ ...row, requests: 0n }))
        )
        assert.strictEqual(
          (yield* billing.balance(orgId)).gpuTime,
          expected.reduce((sum, { micros }) => sum + micros, 0n)
        )
      }),
    { arbitrary: { runs: 25 } }
  )
})
