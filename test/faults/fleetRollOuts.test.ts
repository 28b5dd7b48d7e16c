import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { countedOnce } from "./countedOnce.ts"
import { drawsOf } from "./Draw.ts"
import { someRates } from "./disturbances.ts"
import { noFaults } from "./FaultyServer.ts"
import { type Lane, openLane } from "./Lane.ts"
import { type Serving, serveFirst } from "./serveFirst.ts"
import { watchRoutes } from "./watchRoutes.ts"

const count = Number(process.env.SEATRIAL_FAULT_FLEET_ROLLOUTS ?? 3)
const seed = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
const engines = 4
/** Engines of the model that exist at once during a roll-out: one more than wanted, and at most two that end. */
const mostEngines = engines + 1 + 2
/** Writes of the operator between two of its deaths, in every other roll-out. */
const every = 16
/** Deaths of operators in one roll-out. */
const mostDeaths = 8

const Count = Schema.Tuple([Schema.Struct({ count: Schema.Int })])

/** The engines of the model that get requests, of all its revisions. */
const serving = (lane: Lane, { modelId }: Serving) =>
  Effect.map(
    lane.select(
      Count,
      `SELECT count(*)::int AS count FROM endpoints e JOIN revisions r ON r.org_id = e.org_id AND r.id = e.revision_id WHERE r.model_id = '${modelId}' AND e.reachable_at IS NOT NULL`
    ),
    ([row]) => row.count
  )

/** Rolls the model out to another revision. Returns the least number of engines that got requests during it. */
const rollOut = Effect.fnUntraced(function* (lane: Lane, served: Serving, index: number) {
  let least = engines
  const watch = Effect.gen(function* () {
    while (true) {
      least = Math.min(least, yield* serving(lane, served))
      yield* Effect.sleep("20 millis")
    }
  })
  const isDisturbed = index % 2 === 1
  lane.faults.setFaults(isDisturbed ? someRates(drawsOf(seed + index)) : noFaults, seed + index)
  // A new operator writes once about each earlier run. If all died there, none would get further.
  const concerns = () => lane.deaths.report().killed.length < mostDeaths
  lane.deaths.plan({ at: isDisturbed ? 1 + (index % every) : 0, afterWrite: index % 4 === 1, every, concerns })
  const moved = Effect.gen(function* () {
    const { id } = yield* lane.caller.deploy({ model_id: served.modelId, serving: { host_class: "sim-small", max_context: 400 - index } })
    const { failure_detail, status } = yield* lane.caller.finished(id)
    assert.deepStrictEqual([status, failure_detail], ["activated", null])
    yield* eventually(`${engines} engines of the new revision have traffic`, lane.enginesOf(id), (now) => now === engines)
    yield* eventually("the earlier revision has none", serving(lane, served), (now) => now === engines)
    served.run = id
  })
  yield* Effect.raceFirst(moved, watch)
  const { killed } = lane.deaths.report()
  lane.faults.setFaults(noFaults, seed)
  lane.deaths.plan({ at: 0, afterWrite: false })
  yield* Effect.logInfo(`roll-out ${index}: at least ${least} engines; operators died ${killed.length} times`)
  return least
})

it.live(
  `${count} roll-outs of ${engines} engines, every other one while operators die: no request fails, and never do fewer engines get requests`,
  () =>
    Effect.gen(function* () {
      const lane = yield* openLane
      const served = yield* serveFirst(lane)
      const runs = [served.run]
      yield* lane.caller.call("PUT", `/v1/models/${served.modelId}/scaling`, { replicas: engines })
      yield* eventually(`${engines} engines have traffic`, lane.enginesOf(served.run), (now) => now === engines)
      const everyRouteVerified = yield* watchRoutes(lane)
      const stop = yield* keepAsking(lane.caller, served.model)
      const rollOuts = Effect.gen(function* () {
        for (let index = 0; index < count; index++) {
          assert.strictEqual(yield* rollOut(lane, served, index), engines, `roll-out ${index}`)
          runs.push(served.run)
        }
      })
      yield* Effect.tapCause(rollOuts, (cause) => Effect.logError(`${lane.failure("the roll-outs", cause)}\n${lane.operatorLines()}`))
      const answers = yield* stop
      assert.isAbove(answers.length, count)
      assert.isAtLeast(yield* everyRouteVerified, engines * (count + 1))
      yield* countedOnce(lane.select, mostEngines)
      assert.isAtMost(lane.kubelet.mostPlaced(), mostEngines)
      yield* alwaysHolds(lane, runs, answers)
    }).pipe(Effect.scoped),
  3_600_000
)
