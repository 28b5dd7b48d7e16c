import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { askThroughout, type FailedRequest } from "./askThroughout.ts"
import type { DeathPlan } from "./Deaths.ts"
import { drawsOf } from "./Draw.ts"
import { drainNode, podsOn, setCordoned } from "./drainNode.ts"
import { type Fleet, openFleet } from "./Fleet.ts"
import { type Gateways, openGateways } from "./twoGateways.ts"

const seed = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
/** An operator, or a gateway, dies at every nth write of a step of scaling, once in each step; 1: at every write. */
const stride = Number(process.env.SEATRIAL_FAULT_FLEET_STRIDE ?? 10)
/** More writes than any step of scaling has. */
const most = 200
/** A step ends after this many deaths in a row that did not happen, because the number of writes varies. */
const enough = stride === 1 ? 2 : 1

const [few, many] = [2, 4] as const

/** Scales to `replicas` while a program dies at one write. Returns that write, or null if there were fewer. */
const scaleThroughDeath = Effect.fnUntraced(function* ({ fewestDuring, lane, scale }: Fleet, replicas: number, plan: DeathPlan) {
  lane.deaths.plan({ ...plan, concerns: (about) => about !== "" })
  const fewest = yield* fewestDuring(scale(replicas))
  const [killed = null] = lane.deaths.report().killed
  // A later write is no longer one of this step.
  lane.deaths.plan({ at: 0, afterWrite: false })
  yield* Effect.logInfo(`to ${replicas} engines, write ${plan.at}: ${killed ?? "none died"}; at least ${fewest} had traffic`)
  assert.isAtLeast(fewest, few)
  return killed
})

/** Each step of scaling, up and down, while the operator or a gateway dies before and after the kth write of the step, for each k. */
const everyDeath = Effect.fnUntraced(function* (fleet: Fleet, gateways?: Gateways) {
  const missed = new Map<number, number>([
    [few, 0],
    [many, 0]
  ])
  let deaths = 0
  for (let at = 1 + ((seed - 1) % stride); at < most; at += stride) {
    if ([...missed.values()].every((count) => count >= enough)) break
    for (const afterWrite of stride === 1 ? [false, true] : [(at + seed) % 2 === 0]) {
      for (const replicas of [many, few]) {
        // The step is over before such a write. The other one needs it.
        if ((missed.get(replicas) ?? 0) >= enough) {
          yield* fleet.scale(replicas)
          continue
        }
        const killed = yield* scaleThroughDeath(fleet, replicas, { at, afterWrite, ...(gateways === undefined ? {} : { killOther: gateways.kill }) })
        missed.set(replicas, killed === null ? (missed.get(replicas) ?? 0) + 1 : 0)
        if (killed !== null) deaths++
        if (gateways !== undefined) yield* gateways.replace
      }
    }
  }
  assert.isAbove(deaths, 0)
  yield* Effect.logInfo(`${deaths} deaths`)
  return deaths
})

/** Plays a story with a fleet that has served before, and asserts what always holds. */
const withFleet = (story: (fleet: Fleet) => Effect.Effect<number>, mayFail?: (request: FailedRequest) => boolean) =>
  Effect.gen(function* () {
    const fleet = yield* openFleet
    const engines = yield* Effect.tapCause(story(fleet), (cause) => Effect.logError(fleet.lane.failure("a fleet", cause), fleet.lane.operatorLines()))
    yield* Effect.logInfo(yield* fleet.end(engines, mayFail))
  }).pipe(Effect.scoped)

it.live(`an operator dies at the writes of scaling steps, one in ${stride}, seed ${seed}: no request fails, and never do fewer engines get requests`, () =>
  withFleet((fleet) =>
    Effect.gen(function* () {
      yield* fleet.scale(few)
      yield* everyDeath(fleet)
      return few
    })
  )
)

it.live("the API server is away while a model is scaled: no request fails, and never do fewer engines get requests", () =>
  withFleet(({ fewestDuring, lane, scale }) =>
    Effect.gen(function* () {
      yield* scale(few)
      const draw = drawsOf(seed)
      // Longer than a request may take, and longer than the lease of an operator.
      for (const [replicas, how, seconds] of [
        [many, "hangs", 8],
        [few, "refuses", 20]
      ] as const) {
        const away = Effect.gen(function* () {
          yield* Effect.sleep(draw.between(0, 1_000))
          lane.faults.setAway(how)
          yield* Effect.sleep(seconds * 1_000)
          lane.faults.setAway(null)
        })
        const fewest = yield* fewestDuring(Effect.all([scale(replicas), away], { concurrency: "unbounded" }))
        yield* Effect.logInfo(`to ${replicas} engines, the API server ${how}; at least ${fewest} had traffic`)
        assert.isAtLeast(fewest, few)
      }
      return few
    })
  )
)

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

it.live("a node with half of the engines loses power: only streams on these engines end early, and others replace them", () => {
  let lostAt = Number.POSITIVE_INFINITY
  return withFleet(
    ({ fewestDuring, lane, scale }) =>
      Effect.gen(function* () {
        yield* scale(few)
        yield* setCordoned(lane, "gpu-0", true)
        yield* scale(many)
        yield* setCordoned(lane, "gpu-0", false)
        const meanwhile = Effect.gen(function* () {
          assert.strictEqual((yield* podsOn(lane, "gpu-1")).length, many - few)
          lane.kubelet.cutPower("gpu-1")
          lostAt = Date.now()
          yield* eventually("the lost engines are removed", podsOn(lane, "gpu-1"), (names) => names.length === 0)
          yield* scale(many)
        })
        const fewest = yield* fewestDuring(lane.kubelet.loseNode("gpu-1", meanwhile))
        yield* Effect.logInfo(`at least ${fewest} had traffic`)
        assert.isAtLeast(fewest, few)
        return many
      }),
    ({ startedAt, stream }) => stream && startedAt <= lostAt
  )
})

const Ended = Schema.Array(Schema.Struct({ code: Schema.NullOr(Schema.String) }))

it.live(`a gateway dies at the writes of scaling steps, one in ${stride}, seed ${seed}: only its open requests fail, and the records say why`, () =>
  withFleet((fleet) =>
    Effect.gen(function* () {
      const { lane, model } = fleet
      yield* fleet.scale(few)
      const gateways = yield* openGateways({ ...lane, databaseUrl: lane.product, encryptionKey: lane.state.encryption_key, apiKey: lane.state.api_key }, model)
      const stop = yield* askThroughout(gateways.caller, model)
      assert.strictEqual(yield* everyDeath(fleet, gateways), gateways.deaths().length)
      const { answers, failures } = yield* stop
      gateways.assertFailures(failures)
      assert.isAbove(answers.length, 0)
      const lost = gateways.deaths().map((death) => death.lost)
      const ofLost = `SELECT error_code AS code FROM requests WHERE id IN ('${lost.join("', '")}') AND state <> 'running'`
      const ended = yield* eventually("the streams end in the records", lane.select(Ended, ofLost), (rows) => rows.length === lost.length)
      for (const { code } of ended) assert.strictEqual(code, "gateway_lost")
      yield* Effect.logInfo(`${lost.length} gateways killed; ${answers.length} answers, ${failures.length} failures`)
      return few
    }).pipe(Effect.scoped)
  )
)
