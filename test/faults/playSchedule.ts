import { assert } from "@effect/vitest"
import { ModelDeployment, objectName } from "@seatrial/operator"
import { Effect } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { applyObject, objectGone, removal, removeObject, runOfObject } from "./appliedObject.ts"
import { type Draw, drawsOf } from "./Draw.ts"
import { type Disturbed, disturbances, someRates } from "./disturbances.ts"
import { decodeId, settled, showsEnd } from "./expectedEnd.ts"
import { noFaults } from "./FaultyServer.ts"
import { type Lane, namespace, source } from "./Lane.ts"
import type { Serving } from "./serveFirst.ts"

/** The user's actions in a schedule. */
interface Play {
  readonly disturbed: Disturbed
  /** Whether a user applied the object. */
  readonly applied: boolean
  /** The user's action during the run. */
  readonly meanwhile: Effect.Effect<unknown>
  /** After the last fault: every created run, and whether the objects of these runs remain and must show their end. */
  readonly over: Effect.Effect<{ readonly ids: ReadonlyArray<string>; readonly staysListed: boolean }>
  readonly right: ReadonlyArray<string>
}
type Action = (lane: Lane, serving: Serving, seed: number, draw: Draw) => Effect.Effect<Play>

const contextOf = (seed: number) => 256 + ((seed * 2) % 700)
const hostClass = "sim-small"
const byApi = (run: string) => ({ run, object: objectName(decodeId(run)) })

/** Runs of the serving model. */
const rollOut =
  (also: "" | "cancel" | "another"): Action =>
  ({ caller }, { modelId }, seed, draw) =>
    Effect.gen(function* () {
      const deploy = (context: number) => caller.deploy({ model_id: modelId, serving: { host_class: hostClass, max_context: context } })
      const ids = [(yield* deploy(contextOf(seed))).id]
      const [id = ""] = ids
      const cancel = Effect.sleep(draw.between(0, 2_500)).pipe(Effect.andThen(caller.call("POST", `/v1/deployments/${id}/cancel`)))
      const secondRun = Effect.sleep(draw.between(0, 2_000)).pipe(
        Effect.andThen(deploy(contextOf(seed) + 1)),
        Effect.map((run) => ids.push(run.id))
      )
      return {
        disturbed: byApi(id),
        applied: false,
        meanwhile: also === "cancel" ? cancel : also === "another" ? secondRun : Effect.void,
        over: Effect.sync(() => ({ ids, staysListed: true })),
        right: also === "cancel" ? ["activated", "cancelled"] : ["activated"]
      }
    })

/** A second object that is applied, edited and deleted, at any moment or after it serves. */
const applied: Action = (lane, _, seed, draw) =>
  Effect.gen(function* () {
    const name = `s-${seed}`
    const [edits, waits] = [draw.chance(0.5), draw.chance(0.5)]
    const [editsAfter, deletesAfter] = [draw.between(0, 2_000), draw.between(0, 2_000)]
    yield* applyObject(lane, name, contextOf(seed))
    const first = yield* runOfObject(lane, name, (run) => run !== "")
    const ids = new Set([first])
    return {
      disturbed: { run: first, object: name },
      applied: true,
      meanwhile: Effect.gen(function* () {
        yield* Effect.sleep(editsAfter)
        if (edits) {
          yield* applyObject(lane, name, contextOf(seed) + 1)
          ids.add(yield* runOfObject(lane, name, (run) => run !== first))
        }
        yield* Effect.sleep(deletesAfter)
        if (!waits) yield* removal(lane, name)
      }),
      over: Effect.gen(function* () {
        if (waits) {
          yield* runOfObject(lane, name, (run, phase) => ids.has(run) && phase === "activated")
          yield* removeObject(lane, name)
        } else yield* objectGone(lane, name)
        return { ids: [...ids], staysListed: false }
      }),
      right: waits && !edits ? ["activated"] : ["activated", "cancelled"]
    }
  })

/** A second model that an administrator deletes, at any moment or after it serves. */
const deleted: Action = (lane, _, seed, draw) =>
  Effect.gen(function* () {
    const [waits, after] = [draw.chance(0.5), draw.between(0, 4_000)]
    const { id, model_id } = yield* lane.caller.deploy({ model_name: `s-${seed}`, source, serving: { host_class: hostClass, max_context: contextOf(seed) } })
    const disturbed = byApi(id)
    const remove = lane.removeModel(model_id)
    return {
      disturbed,
      applied: false,
      meanwhile: waits ? Effect.void : Effect.andThen(Effect.sleep(after), remove),
      over: Effect.gen(function* () {
        if (waits) {
          yield* lane.caller.finished(id)
          yield* remove
        }
        const object = patiently(lane.kube.get(ModelDeployment, disturbed.object, namespace))
        yield* eventually(`the custom resource of ${id} goes`, object, ({ _tag }) => _tag === "None")
        return { ids: [id], staysListed: false }
      }),
      right: waits ? ["activated"] : ["activated", "cancelled"]
    }
  })

const actions = [
  ["roll-out", rollOut("")],
  ["roll-out", rollOut("")],
  ["cancelled", rollOut("cancel")],
  ["two", rollOut("another")],
  ["applied", applied],
  ["model deleted", deleted]
] as const

/**
 * Plays one schedule of faults over a roll-out, an applied object or a deleted model, while a client sends requests to the
 * serving model. Everything except the speed of the machine follows from the seed. Returns the actions, for a report.
 */
export const playSchedule = Effect.fnUntraced(function* (lane: Lane, serving: Serving, seed: number) {
  // Otherwise only the first run of the lane would have a download.
  if (seed % 2 === 0) yield* lane.forgetWeights
  const draw = drawsOf(seed)
  const { caller, faults } = lane
  const story: Array<string> = []
  const stop = yield* keepAsking(caller, serving.model, "150 millis")
  const rates = someRates(draw)
  const writes = 1 + (seed % 45)
  const afterWrite = draw.chance(0.5)
  const lives = lane.lives()
  faults.setFaults(rates, seed)
  lane.deaths.plan({ at: writes, afterWrite })
  const [action, begin] = draw.pick(actions)
  story.push(`dies ${afterWrite ? "after" : "before"} write ${writes}`, action)
  const play = yield* begin(lane, serving, seed, draw)
  const drawn = disturbances
    .filter(({ deletes = false }) => draw.chance(0.25) && !(play.applied && deletes))
    .map((disturbance) => ({ ...disturbance, after: draw.between(0, 3_000), own: drawsOf(draw.integer(0, 1e9)) }))
  yield* Effect.all(
    [
      ...drawn.map(({ after, happen, name, own }) =>
        Effect.sleep(after).pipe(Effect.andThen(Effect.sync(() => story.push(name))), Effect.andThen(happen(lane, play.disturbed, own)))
      ),
      play.meanwhile,
      Effect.sleep("3 seconds")
    ],
    { concurrency: "unbounded", discard: true }
  )
  faults.setFaults(noFaults, seed)

  yield* Effect.logInfo(`seed ${seed}: ${story.join(", ")}: ${play.disturbed.run}`)
  const { ids, staysListed } = yield* play.over
  const ends: Array<string> = []
  const statuses = new Map<string, string>()
  for (const id of ids) {
    const ended = yield* caller.finished(id)
    inOrder(ended)
    statuses.set(id, ended.status)
    ends.push(`${ended.status}${ended.failure_detail === null ? "" : ` (${ended.failure_detail})`}`)
    assert.include(play.right, ended.status, `${story.join(", ")}: ${ended.failure_detail}`)
    if (staysListed && ended.status === "activated") serving.run = id
  }
  yield* settled(lane, serving.run)
  if (staysListed) for (const [id, status] of statuses) yield* showsEnd(lane, id, status, id === serving.run)
  lane.deaths.plan({ at: 0, afterWrite: false })
  const answers = yield* stop
  assert.isAbove(answers.length, 0)
  yield* alwaysHolds(lane, ids, answers)
  return `${story.join(", ")} -> ${ends.join(", ")}; ${answers.length} answers, ${lane.lives() - lives} deaths`
}, Effect.scoped)
