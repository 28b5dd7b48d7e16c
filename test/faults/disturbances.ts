import { enginePodName, ModelDeployment } from "@seatrial/operator"
import { Effect } from "effect"
import type { Draw } from "./Draw.ts"
import { decodeId } from "./expectedEnd.ts"
import type { FaultRates } from "./FaultyServer.ts"
import { type Lane, namespace } from "./Lane.ts"

/** The rates of one schedule: half of the faults do not occur. */
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

/** A run, and the name of the custom resource that shows it. */
export interface Disturbed {
  readonly run: string
  readonly object: string
}

/** A fault during a run. */
interface Disturbance {
  readonly name: string
  /** For an applied object this is a request of its owner, not a fault. */
  readonly deletes?: boolean
  readonly happen: (lane: Lane, what: Disturbed, draw: Draw) => Effect.Effect<unknown>
}

const pause = (draw: Draw, most: number) => Effect.sleep(draw.between(0, most))
const podOf = (run: string) => enginePodName(decodeId(run))
const quietly = <A, E>(effect: Effect.Effect<A, E>) => Effect.ignore(effect)

/** Only before the trial: if the only serving engine dies, requests fail, and no operator can prevent that. */
const untilTrial = (lane: Lane, run: string, disturb: Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const { status } = yield* lane.caller.deployment(run)
    // The trial of a stand-in takes a moment: a run that was booting at the time of the request may serve now.
    if (["provisioning", "booting"].includes(status) && lane.kubelet.takesLoading(podOf(run))) yield* disturb
  })

export const disturbances: ReadonlyArray<Disturbance> = [
  {
    name: "the API server is away",
    happen: ({ faults }, _, draw) =>
      Effect.sync(() => faults.setAway("refuses")).pipe(
        Effect.andThen(Effect.sleep(draw.between(100, 2_000))),
        Effect.ensuring(Effect.sync(() => faults.setAway(null)))
      )
  },
  {
    name: "Postgres is away",
    happen: ({ line }, _, draw) => Effect.sync(line.cut).pipe(Effect.andThen(Effect.sleep(draw.between(100, 2_000))), Effect.ensuring(Effect.sync(line.mend)))
  },
  { name: "the custom resource is deleted", deletes: true, happen: ({ kube }, { object }) => quietly(kube.remove(ModelDeployment, object, namespace)) },
  {
    name: "labels and annotations are stripped",
    happen: ({ kube }, { object }) => quietly(kube.mergePatch(ModelDeployment, object, namespace, { metadata: { annotations: null, labels: null } }))
  },
  {
    name: "a finalizer holds the custom resource, which is deleted, for a while",
    deletes: true,
    happen: ({ kube }, { object }, draw) =>
      Effect.gen(function* () {
        yield* quietly(kube.mergePatch(ModelDeployment, object, namespace, { metadata: { finalizers: ["example.dev/hold"] } }))
        yield* quietly(kube.remove(ModelDeployment, object, namespace))
        yield* pause(draw, 1_500)
        yield* quietly(kube.mergePatch(ModelDeployment, object, namespace, { metadata: { finalizers: null } }))
      })
  },
  { name: "the new engine is killed for its memory", happen: (lane, { run }) => untilTrial(lane, run, lane.kubelet.killForMemory(podOf(run))) },
  {
    name: "the new engine's GPU fails",
    happen: (lane, { run }, draw) =>
      untilTrial(
        lane,
        run,
        Effect.acquireUseRelease(
          lane.kubelet.failForGpu(podOf(run)),
          () => pause(draw, 1_500),
          (mend) => mend
        )
      )
  },
  {
    name: "the new engine's node falls silent",
    happen: ({ kubelet }, { run }, draw) =>
      Effect.flatMap(kubelet.nodeOf(podOf(run)), (node) => (node === undefined ? Effect.void : kubelet.loseNode(node, Effect.sleep(draw.between(300, 2_000)))))
  },
  { name: "the operator dies again", happen: (lane, _, draw) => Effect.sync(() => lane.deaths.plan({ at: draw.integer(1, 12), afterWrite: draw.chance(0.5) })) }
]
