import { assert } from "@effect/vitest"
import { enginePodName, ModelDeployment, objectName } from "@seatrial/operator"
import { Effect } from "effect"
import { keepAsking } from "../e2e/keepAsking.ts"
import { type Draw, drawsOf } from "./Draw.ts"
import { type FaultRates, noFaults } from "./FaultyServer.ts"
import { type Lane, namespace } from "./Lane.ts"
import { decodeId, inOrder, settled, shown } from "./rightEnd.ts"
import type { Serving } from "./serveFirst.ts"

/** Rates of a schedule's own: half of the faults do not appear at all. */
export const someRates = (draw: Draw): FaultRates => {
  const rate = (most: number) => (draw.chance(0.5) ? draw.between(0, most) : 0)
  return {
    refused: rate(0.1),
    unanswered: rate(0.15),
    conflict: rate(0.3),
    throttled: rate(0.05),
    broken: rate(0.1),
    cut: rate(0.1),
    gone: rate(0.3),
    dropped: rate(0.3),
    repeated: rate(0.3),
    reordered: rate(0.3),
    delayed: rate(0.3)
  }
}

type Disturbance = readonly [name: string, (lane: Lane, id: string, draw: Draw) => Effect.Effect<unknown>]

const pause = (draw: Draw, most: number) => Effect.sleep(draw.between(0, most))
const podOf = (id: string) => enginePodName(decodeId(id))
const quietly = <A, E>(effect: Effect.Effect<A, E>) => Effect.ignore(effect)

/** Only before the trial: an engine that serves alone and dies is missed by who asks, whatever an operator does. */
const untilTrial = (lane: Lane, id: string, disturb: Effect.Effect<unknown>) =>
  Effect.flatMap(lane.caller.deployment(id), ({ status }) => (["provisioning", "booting"].includes(status) ? Effect.asVoid(disturb) : Effect.void))

const disturbances: ReadonlyArray<Disturbance> = [
  [
    "the API server is away",
    ({ faults }, _, draw) =>
      Effect.sync(() => faults.setAway(true)).pipe(
        Effect.andThen(Effect.sleep(draw.between(100, 2_000))),
        Effect.ensuring(Effect.sync(() => faults.setAway(false)))
      )
  ],
  [
    "Postgres is away",
    ({ line }, _, draw) => Effect.sync(line.cut).pipe(Effect.andThen(Effect.sleep(draw.between(100, 2_000))), Effect.ensuring(Effect.sync(line.mend)))
  ],
  ["the custom resource is deleted", ({ kube }, id) => quietly(kube.remove(ModelDeployment, objectName(decodeId(id)), namespace))],
  [
    "labels and annotations are stripped",
    ({ kube }, id) => quietly(kube.mergePatch(ModelDeployment, objectName(decodeId(id)), namespace, { metadata: { annotations: null, labels: null } }))
  ],
  [
    "a finalizer holds the custom resource, which is deleted, for a while",
    ({ kube }, id, draw) =>
      Effect.gen(function* () {
        const name = objectName(decodeId(id))
        yield* quietly(kube.mergePatch(ModelDeployment, name, namespace, { metadata: { finalizers: ["example.dev/hold"] } }))
        yield* quietly(kube.remove(ModelDeployment, name, namespace))
        yield* pause(draw, 1_500)
        yield* quietly(kube.mergePatch(ModelDeployment, name, namespace, { metadata: { finalizers: null } }))
      })
  ],
  ["the new engine is killed for its memory", (lane, id) => untilTrial(lane, id, lane.kubelet.killForMemory(podOf(id)))],
  ["the new engine's GPU fails", (lane, id) => untilTrial(lane, id, lane.kubelet.failForGpu(podOf(id)))],
  [
    "the new engine's node falls silent",
    ({ kubelet }, id, draw) =>
      Effect.flatMap(kubelet.nodeOf(podOf(id)), (node) => (node === undefined ? Effect.void : kubelet.loseNode(node, draw.between(300, 2_000))))
  ],
  ["the operator dies again", (lane, _, draw) => Effect.sync(() => lane.deaths.plan({ at: draw.integer(1, 12), made: draw.chance(0.5) }))]
]

/**
 * One schedule of faults over a roll-out: everything about it follows from the seed, but for how fast this machine is. A client asks for the model throughout. Gives what
 * was done, for a report.
 */
export const playSchedule = Effect.fnUntraced(function* (lane: Lane, serving: Serving, seed: number) {
  const draw = drawsOf(seed)
  const { caller, faults } = lane
  const story: Array<string> = []
  const stop = yield* keepAsking(caller, serving.model)
  const rates = someRates(draw)
  const writes = 1 + (seed % 45)
  const made = draw.chance(0.5)
  const lives = lane.lives()
  faults.setFaults(rates, seed)
  lane.deaths.plan({ at: writes, made })
  story.push(`dies ${made ? "after" : "before"} write ${writes}`)
  const action = draw.pick(["roll-out", "roll-out", "cancelled", "two"])
  story.push(action)
  const deploy = (context: number) => caller.deploy({ model_id: serving.modelId, serving: { host_class: "sim-small", max_context: context } })
  const ids = [(yield* deploy(256 + ((seed * 2) % 700))).id]
  const disturbed = disturbances
    .filter(() => draw.chance(0.25))
    .map(([name, disturb]) => [name, disturb, draw.between(0, 3_000), drawsOf(draw.integer(0, 1e9))] as const)
  const [first = ""] = ids
  yield* Effect.all(
    [
      ...disturbed.map(([name, disturb, after, own]) =>
        Effect.sleep(after).pipe(Effect.andThen(Effect.sync(() => story.push(name))), Effect.andThen(disturb(lane, first, own)))
      ),
      ...(action === "cancelled" ? [Effect.sleep(draw.between(0, 2_500)).pipe(Effect.andThen(caller.call("POST", `/v1/deployments/${first}/cancel`)))] : []),
      ...(action === "two"
        ? [
            Effect.sleep(draw.between(0, 2_000)).pipe(
              Effect.andThen(Effect.flatMap(deploy(257 + ((seed * 2) % 700)), ({ id }) => Effect.sync(() => ids.push(id))))
            )
          ]
        : []),
      Effect.sleep("3 seconds")
    ],
    { concurrency: "unbounded", discard: true }
  )
  faults.setFaults(noFaults, seed)

  yield* Effect.logInfo(`seed ${seed}: ${story.join(", ")}: ${ids.join()}`)
  const ends: Array<string> = []
  const statuses = new Map<string, string>()
  for (const id of ids) {
    const ended = yield* caller.finished(id)
    inOrder(ended)
    statuses.set(id, ended.status)
    ends.push(`${ended.status}${ended.failure_detail === null ? "" : ` (${ended.failure_detail})`}`)
    const right = action === "cancelled" ? ["activated", "cancelled"] : ["activated"]
    assert.include(right, ended.status, `${story.join(", ")}: ${ended.failure_detail}`)
    if (ended.status === "activated") serving.run = id
  }
  yield* settled(lane, serving.run)
  for (const [id, status] of statuses) yield* shown(lane, id, status, id === serving.run)
  lane.deaths.plan({ at: 0, made: false })
  const answers = yield* stop
  assert.isAbove(answers.length, 0)
  return `${story.join(", ")} -> ${ends.join(", ")}; ${answers.length} answers, ${lane.lives() - lives} deaths`
}, Effect.scoped)
