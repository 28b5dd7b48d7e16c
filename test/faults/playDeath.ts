import { assert } from "@effect/vitest"
import { isFinished } from "@seatrial/domain"
import { Effect } from "effect"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { applyObject, removeObject, runOfObject } from "./appliedObject.ts"
import { drawsOf } from "./Draw.ts"
import { someRates } from "./disturbances.ts"
import { decodeId, settled, showsEnd } from "./expectedEnd.ts"
import { noFaults } from "./FaultyServer.ts"
import type { Lane } from "./Lane.ts"
import type { Serving } from "./serveFirst.ts"

export interface Death {
  readonly seed: number
  readonly at: number
  readonly afterWrite: boolean
  readonly every: number
}

/** The part of an id that is also in the names of its objects. */
const within = (id: string) => id.slice(id.indexOf("_") + 1)

let played = 0

/** The actions while operators die. Returns every run that they created. */
type Story = (lane: Lane, serving: Serving, context: number, name: string) => Effect.Effect<ReadonlyArray<string>>

const rollOut: Story = (lane, serving, context) =>
  Effect.gen(function* () {
    const { caller } = lane
    const earlier = serving.run
    const { id } = yield* caller.deploy({ model_id: serving.modelId, serving: { host_class: "sim-small", max_context: context } })
    const { failure_detail, status } = yield* caller.finished(id)
    assert.deepStrictEqual([status, failure_detail], ["activated", null])
    serving.run = id
    return [earlier, id]
  })

/** The serving model gets a second engine, and gives it back. */
const scaled: Story = (lane, { modelId, run }) =>
  Effect.gen(function* () {
    for (const replicas of [2, 1]) {
      yield* lane.caller.call("PUT", `/v1/models/${modelId}/scaling`, { replicas })
      yield* eventually(`${replicas} engines have traffic`, lane.enginesOf(run), (count) => count === replicas)
    }
    return [run]
  })

/** An object is applied, edited while it serves, and deleted, either when it serves again or before. */
const applied =
  (inTheMiddle: boolean): Story =>
  (lane, _, context, name) =>
    Effect.gen(function* () {
      yield* applyObject(lane, name, context)
      const first = yield* runOfObject(lane, name, (_, phase) => phase === "Activated" || phase === "activated")
      yield* applyObject(lane, name, context + 1)
      const second = yield* runOfObject(
        lane,
        name,
        (run, phase) => run !== first && run !== "" && (inTheMiddle ? phase !== "" && phase !== "screening" : phase === "activated")
      )
      yield* removeObject(lane, name)
      return [first, second]
    })

const stories = [
  ["a roll-out", rollOut],
  ["applied, edited and deleted", applied(false)],
  ["applied, edited, and deleted in the roll-out", applied(true)],
  ["scaled to two engines and back", scaled]
] as const

/** Plays one story in which operators die, while a client sends requests to the lane's model. Returns the writes at which they died. */
export const playDeath = Effect.fnUntraced(function* (lane: Lane, serving: Serving, { at, every, afterWrite, seed }: Death) {
  const { deaths, faults } = lane
  const [what, story] = stories[(seed - 1) % stories.length] ?? stories[0]
  const number = ++played
  const name = `m-${number}`
  const context = 128 + (number % 880)
  // Otherwise only the first run of the lane would have a download.
  if (number % 3 !== 0) yield* lane.forgetWeights
  const isOfServing = story === rollOut || story === scaled
  const earlier = (yield* lane.runs).filter((id) => id !== serving.run || !isOfServing).map(within)
  // The first seed of each story has no other faults, so that its writes are always the same.
  const rates = someRates(drawsOf(seed))
  const few = seed <= stories.length ? noFaults : { ...rates, gone: rates.gone / 3, dropped: rates.dropped / 3 }
  const stop = yield* keepAsking(lane.caller, serving.model)
  const lives = lane.lives()
  faults.setFaults(few, seed * 1_000 + at)
  const concerns = (about: string) => about !== "" && !earlier.some((id) => about.includes(id))
  deaths.plan({ at, afterWrite, every, concerns })
  const runs = yield* story(lane, serving, context, name).pipe(Effect.ensuring(Effect.sync(() => faults.setFaults(noFaults, seed))))
  for (const id of runs) {
    const ended = yield* lane.caller.deployment(id)
    assert.isTrue(isFinished(ended.status), ended.status)
    inOrder(ended)
  }
  yield* settled(lane, serving.run)
  if (story === rollOut) for (const id of runs) yield* showsEnd(lane, id, "activated", id === serving.run)
  const { killed } = deaths.report()
  deaths.plan({ at: 0, afterWrite: false })
  const answers = yield* stop
  assert.isAbove(answers.length, 0)
  yield* alwaysHolds(lane, runs, answers)
  return { story: `${what}, ${runs.map((id) => decodeId(id)).join(", ")}; ${answers.length} answers, ${lane.lives() - lives} deaths`, killed }
}, Effect.scoped)
