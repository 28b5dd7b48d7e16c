import { WorkQueue } from "@seatrial/kube"
import { GpuHolds, type OpenHold } from "@seatrial/store"
import { Clock, Effect, Option, Schedule, type Scope } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { hostClassLabel } from "../resources/objectNames.ts"
import { toPodClass } from "../resources/PodClass.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { makeHoldMetrics } from "./holdMetrics.ts"
import { type PodHold, podHold } from "./podHold.ts"

/** Milliseconds between two passes over all pods. */
const passIntervalMillis = 10_000

/** The memory of pods of one name. `released`: uids of pods that still exist but whose GPUs are free. */
interface Known {
  readonly open: Map<string, OpenHold>
  readonly released: Set<string>
}

export interface HoldKeeper {
  /** The pod of that name, or its node, has changed. */
  readonly pass: (name: string) => Effect.Effect<void>
  /** Records the GPUs of this pod before its deletion. The next operator cannot count a deleted pod. */
  readonly record: (pod: WatchedPod) => Effect.Effect<void>
  /** All recorded holds. */
  readonly held: () => ReadonlyArray<OpenHold>
}

type Holds = GpuHolds["Service"]

/** The GPUs that the pod holds now; null if it holds none. */
const readHold = Effect.fnUntraced(function* ({ hostClasses, nodes }: Cluster, pod: WatchedPod) {
  const node = pod.spec?.nodeName === undefined ? Option.none() : yield* nodes.get(pod.spec.nodeName)
  const classes = (yield* hostClasses.list()).flatMap((object) => Option.toArray(toPodClass(object)))
  const podClass = classes.find((each) => each.hostClass.name === pod.metadata.labels?.[hostClassLabel])
  return podHold(pod, Option.getOrUndefined(node), podClass, yield* Clock.currentTimeMillis)
})

/** The recorded hold of the pod. Records its start if it is new; null if that is refused. */
const openHold = Effect.fnUntraced(function* (holds: Holds, open: Known["open"], { organization, placement }: PodHold) {
  const { deploymentId, gpus, hostClass, pod, podUid } = placement
  const known = open.get(podUid)
  if (known !== undefined) return known
  if (!(yield* holds.place(placement))) return null
  const hold: OpenHold = { podUid, pod, deploymentId, organization, hostClass, gpus, silent: false, failing: null }
  open.set(podUid, hold)
  return hold
})

/** Records what has changed while the pod holds its GPUs. */
const updateHold = Effect.fnUntraced(function* (holds: Holds, open: Known["open"], before: OpenHold, { failing, silentSince }: PodHold) {
  const { podUid } = before
  const silent = silentSince !== null
  if (silent !== before.silent) yield* holds.silent(podUid, silentSince)
  if (failing?.ends !== before.failing?.ends || failing?.nextStartAt !== before.failing?.nextStartAt) yield* holds.failing(podUid, failing)
  open.set(podUid, { ...before, silent, failing })
})

/** Brings the record of one pod up to date. `isGone`: whether the pod is deleted, and this is its last state. */
const recordPod = Effect.fnUntraced(function* (holds: Holds, { open, released }: Known, hold: PodHold, isGone: boolean) {
  const { podUid } = hold.placement
  if (released.has(podUid)) {
    if (isGone) released.delete(podUid)
    return
  }
  const before = yield* openHold(holds, open, hold)
  if (before === null) return
  if (!isGone && hold.released === null) return yield* updateHold(holds, open, before, hold)
  yield* holds.release(podUid, hold.released?.at ?? null)
  open.delete(podUid)
  if (!isGone) released.add(podUid)
})

/**
 * Records the GPUs that engine pods hold, from the state of the pods. It starts with the recorded holds: the first pass
 * over each releases pods that went while no operator watched. Passes are idempotent.
 */
export const makeHoldKeeper = Effect.fnUntraced(function* (cluster: Cluster): Effect.fn.Return<HoldKeeper, never, GpuHolds> {
  const holds = yield* GpuHolds
  const { gonePods, namespace } = cluster
  const pods = new Map<string, Known>()
  const knownOf = (name: string): Known => {
    const known = pods.get(name) ?? { open: new Map(), released: new Set() }
    pods.set(name, known)
    return known
  }
  for (const hold of yield* holds.open) knownOf(hold.pod).open.set(hold.podUid, hold)

  const record = Effect.fnUntraced(function* (pod: WatchedPod, known: Known, isGone: boolean) {
    const hold = yield* readHold(cluster, pod)
    if (hold !== null) yield* recordPod(holds, known, hold, isGone)
  })
  /** Releases the GPUs of pods that disappeared without a last state. */
  const releaseMissing = Effect.fnUntraced(function* ({ open }: Known, present: WatchedPod | undefined) {
    for (const uid of [...open.keys()]) {
      if (uid === present?.metadata.uid) continue
      yield* holds.release(uid, null)
      open.delete(uid)
    }
  })

  return {
    pass: Effect.fnUntraced(function* (name) {
      const known = knownOf(name)
      const pod = Option.getOrUndefined(yield* cluster.pods.get(name, namespace))
      for (const [uid, gone] of gonePods) {
        if (gone.metadata.name !== name) continue
        yield* record(gone, known, true)
        gonePods.delete(uid)
      }
      yield* releaseMissing(known, pod)
      if (pod !== undefined) yield* record(pod, known, false)
      if (known.open.size === 0 && known.released.size === 0) pods.delete(name)
    }),
    record: Effect.fnUntraced(function* (pod) {
      const { open, released } = pods.get(pod.metadata.name) ?? {}
      const uid = pod.metadata.uid ?? ""
      if (open?.has(uid) === true || released?.has(uid) === true) return
      const hold = yield* readHold(cluster, pod)
      if (hold !== null) yield* holds.place(hold.placement)
    }),
    held: () => [...pods.values()].flatMap(({ open }) => [...open.values()])
  }
})

/** Keeps the record of held GPUs until the scope closes. `enqueue` requests a pass over the pod of that name. */
export const keepHolds = Effect.fnUntraced(function* (
  cluster: Cluster
): Effect.fn.Return<{ readonly enqueue: (name: string) => Effect.Effect<void>; readonly record: HoldKeeper["record"] }, never, GpuHolds | Scope.Scope> {
  const holds = yield* GpuHolds
  const keeper = yield* makeHoldKeeper(cluster)
  const queue = yield* WorkQueue.make({ name: "gpu-holds", concurrency: 4, work: (name: string) => Effect.as(keeper.pass(name), Option.none()) })
  for (const { pod } of keeper.held()) yield* queue.add(pod)
  // The record is current only if no change waits to be recorded.
  const confirm = Effect.flatMap(queue.size, (pending) => (pending === 0 && cluster.gonePods.size === 0 ? holds.recordObservation : Effect.void))
  const counted = makeHoldMetrics(keeper.held)
  yield* Effect.addFinalizer(() => counted.none)
  yield* counted.count.pipe(
    Effect.andThen(confirm),
    Effect.timeout("10 seconds"),
    Effect.sandbox,
    Effect.ignore,
    Effect.schedule(Schedule.spaced(passIntervalMillis)),
    Effect.forkScoped
  )
  return { enqueue: queue.add, record: keeper.record }
})
