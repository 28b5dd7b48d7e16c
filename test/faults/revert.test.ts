import { assert, it } from "@effect/vitest"
import { Pod } from "@seatrial/kube"
import { enginePodName } from "@seatrial/operator"
import { Effect, Option } from "effect"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { alwaysHolds } from "./alwaysHolds.ts"
import { applyObject, removeObject, runOfObject } from "./appliedObject.ts"
import { decodeId, settled, showsEnd } from "./expectedEnd.ts"
import { type Lane, namespace, openLane } from "./Lane.ts"
import { firstServing, serveFirst } from "./serveFirst.ts"

const engineOf = ({ kube }: Lane, run: string) =>
  Effect.map(patiently(kube.get(Pod, enginePodName(decodeId(run)), namespace)), (pod) => Option.getOrUndefined(pod)?.metadata.uid)

/** Waits until the engine of a run that cannot become ready has a node, and the run boots. */
const boots = (lane: Lane, run: string) =>
  Effect.gen(function* () {
    yield* lane.caller.until(run, "boots", ({ status }) => status === "booting")
    assert.isDefined(yield* engineOf(lane, run))
  })

/** The expected state after `third` returned to the revision of `first` while `second` booted: the serving engine is unchanged, and nothing else remains. */
const wentBack = Effect.fnUntraced(function* (lane: Lane, [first, second, third]: readonly [string, string, string]) {
  const runs = yield* Effect.forEach([first, second, third], lane.caller.deployment)
  for (const run of runs) inOrder(run)
  assert.deepStrictEqual(
    runs.map(({ failure_detail, status }) => [status, failure_detail]),
    [
      ["activated", null],
      ["cancelled", null],
      ["activated", null]
    ]
  )
  assert.strictEqual(runs[2]?.revision_id, runs[0]?.revision_id)
  // The run downloaded, started and tried nothing.
  assert.deepStrictEqual(
    runs[2]?.phases.map(({ status }) => status),
    ["screening", "activating", "activated"]
  )
  yield* settled(lane, first)
})

/** An applied object is edited and reverted. With `every`, the operator dies at each of this many writes. */
const edited = (lane: Lane, name: string, every: number) =>
  Effect.gen(function* () {
    const { deaths, kubelet } = lane
    yield* applyObject(lane, name, 300)
    const first = yield* runOfObject(lane, name, (run, phase) => run !== "" && phase === "activated")
    const engine = yield* engineOf(lane, first)
    const stop = yield* keepAsking(lane.caller, `${lane.slug}/${name}`)
    kubelet.holdStarts(true)
    const served = first.slice(first.indexOf("_") + 1)
    deaths.plan({ at: every, afterWrite: true, every, concerns: (about) => about !== "" && !about.includes(served) })
    yield* applyObject(lane, name, 301)
    const second = yield* runOfObject(lane, name, (run) => run !== "" && run !== first)
    yield* boots(lane, second)
    yield* applyObject(lane, name, 300)
    const third = yield* runOfObject(lane, name, (run, phase) => ![first, second, ""].includes(run) && phase === "activated")
    kubelet.holdStarts(false)
    yield* wentBack(lane, [first, second, third])
    const { killed } = deaths.report()
    deaths.plan({ at: 0, afterWrite: false })
    if (every > 0) assert.isAbove(killed.length, 1)
    assert.strictEqual(yield* engineOf(lane, first), engine)
    yield* alwaysHolds(lane, [first, second, third], yield* stop)
    yield* removeObject(lane, name)
    yield* eventually("the engine of what was deleted goes", engineOf(lane, first), (uid) => uid === undefined)
  }).pipe(Effect.scoped)

/** The same through the API: the caller cancels the run that is no longer needed. */
const cancelled = (lane: Lane) =>
  Effect.gen(function* () {
    const { caller, kubelet } = lane
    const { model, modelId, run } = yield* serveFirst(lane)
    const engine = yield* engineOf(lane, run)
    const stop = yield* keepAsking(caller, model)
    kubelet.holdStarts(true)
    const { id: second } = yield* caller.deploy({ model_id: modelId, serving: { host_class: "sim-small", max_context: 301 } })
    yield* boots(lane, second)
    assert.strictEqual((yield* caller.call("POST", `/v1/deployments/${second}/cancel`)).status, 200)
    const { id: third } = yield* caller.deploy({ model_id: modelId, serving: firstServing })
    yield* caller.finished(third)
    kubelet.holdStarts(false)
    yield* wentBack(lane, [run, second, third])
    yield* showsEnd(lane, third, "activated", true)
    assert.strictEqual(yield* engineOf(lane, run), engine)
    yield* alwaysHolds(lane, [run, second, third], yield* stop)
  }).pipe(Effect.scoped)

it.live(
  "if the specification returns to the serving revision while another one boots, no request fails, and only the record of the other one remains",
  () =>
    Effect.gen(function* () {
      const lane = yield* openLane
      yield* edited(lane, "back", 0)
      yield* edited(lane, "back-with-deaths", 7)
      yield* cancelled(lane)
    }).pipe(Effect.scoped),
  1_200_000
)
