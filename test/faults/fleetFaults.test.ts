import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { drainNode, setCordoned } from "./drainNode.ts"
import { type Fleet, openFleet } from "./Fleet.ts"

const seed = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
/** An operator dies at every nth write of a step of scaling, once in each step; 1: at every write. */
const stride = Number(process.env.SEATRIAL_FAULT_FLEET_STRIDE ?? 10)
/** More writes than any step of scaling has. */
const most = 200
/** A step ends after this many deaths in a row that did not happen, because the number of writes varies. */
const enough = 2

const [few, many] = [2, 4] as const
const isHardest = stride === 1

/** Scales to `replicas` while the operator dies at one write. Returns that write, or null if there were fewer. */
const scaleThroughDeath = Effect.fnUntraced(function* ({ fewestDuring, lane, scale }: Fleet, replicas: number, at: number, afterWrite: boolean) {
  lane.deaths.plan({ at, afterWrite, concerns: (about) => about !== "" })
  const fewest = yield* fewestDuring(scale(replicas))
  const [killed = null] = lane.deaths.report().killed
  yield* Effect.logInfo(`to ${replicas} engines, write ${at}: ${killed ?? "none died"}; at least ${fewest} had traffic`)
  assert.isAtLeast(fewest, few)
  return killed
})

/** Each step of scaling, up and down, while an operator dies before and after the kth write of the step, for each k. */
const everyDeath = Effect.fnUntraced(function* (fleet: Fleet) {
  const missed = new Map<number, number>([
    [few, 0],
    [many, 0]
  ])
  let deaths = 0
  for (let at = 1 + ((seed - 1) % stride); at < most; at += stride) {
    if ([...missed.values()].every((count) => count >= enough)) break
    for (const afterWrite of isHardest ? [false, true] : [(at + seed) % 2 === 0]) {
      for (const replicas of [many, few]) {
        // The step is over before such a write. The other one needs it.
        if ((missed.get(replicas) ?? 0) >= enough) {
          yield* fleet.scale(replicas)
          continue
        }
        const killed = yield* scaleThroughDeath(fleet, replicas, at, afterWrite)
        missed.set(replicas, killed === null ? (missed.get(replicas) ?? 0) + 1 : 0)
        if (killed !== null) deaths++
      }
    }
  }
  fleet.lane.deaths.plan({ at: 0, afterWrite: false })
  return deaths
})

it.live(`an operator dies at the writes of scaling steps, one in ${stride}, seed ${seed}: no request fails, and never do fewer engines get requests`, () =>
  Effect.gen(function* () {
    const fleet = yield* openFleet
    yield* fleet.scale(few)
    const deaths = yield* Effect.tapCause(everyDeath(fleet), (cause) =>
      Effect.logError(fleet.lane.failure("a scaling step", cause), fleet.lane.operatorLines())
    )
    assert.isAbove(deaths, 0)
    const answers = yield* fleet.end(few)
    yield* Effect.logInfo(`${deaths} deaths, ${answers} answers`)
  }).pipe(Effect.scoped)
)

/** Plays a story with a fleet that has served before, and asserts what always holds. */
const withFleet = (story: (fleet: Fleet) => Effect.Effect<number>) =>
  Effect.gen(function* () {
    const fleet = yield* openFleet
    const engines = yield* Effect.tapCause(story(fleet), (cause) => Effect.logError(fleet.lane.failure("a fleet", cause), fleet.lane.operatorLines()))
    yield* Effect.logInfo(`${yield* fleet.end(engines)} answers`)
  }).pipe(Effect.scoped)

it.live("a node is drained: no request fails, and all engines but one always get requests, also while new engines are compared", () =>
  withFleet(({ fewestDuring, lane, scale }) =>
    Effect.gen(function* () {
      yield* scale(many)
      lane.setComparison(1_500)
      for (const node of ["gpu-0", "gpu-1"]) {
        const fewest = yield* fewestDuring(drainNode(lane, node))
        yield* Effect.logInfo(`${node} is drained; at least ${fewest} had traffic`)
        assert.isAtLeast(fewest, many - 1)
        yield* scale(many)
        yield* setCordoned(lane, node, false)
      }
      return many
    })
  )
)
