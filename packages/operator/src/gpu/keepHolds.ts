import { WorkQueue } from "@seatrial/kube"
import { GpuHolds, type OpenHold } from "@seatrial/store"
import { Clock, Effect, Option, Schedule, type Scope } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import type { WatchedPod } from "../gather/watched.ts"
import { toPodClass } from "../resources/HostClassResource.ts"
import { hostClassLabel } from "../resources/objectNames.ts"
import { makeHoldMetrics } from "./holdMetrics.ts"
import { podHold } from "./podHold.ts"

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

  const holdOf = Effect.fnUntraced(function* (pod: WatchedPod) {
    const node = pod.spec?.nodeName === undefined ? Option.none() : yield* cluster.nodes.get(pod.spec.nodeName)
    const classes = (yield* cluster.hostClasses.list()).flatMap((object) => Option.toArray(toPodClass(object)))
    const podClass = classes.find((each) => each.hostClass.name === pod.metadata.labels?.[hostClassLabel])
    return podHold(pod, Option.getOrUndefined(node), podClass, yield* Clock.currentTimeMillis)
  })

  const record = Effect.fnUntraced(function* (pod: WatchedPod, { open, released }: Known, gone: boolean) {
    const hold = yield* holdOf(pod)
    if (hold === null) return
    const { failing, organization, placement, silentSince } = hold
    const { gpus, hostClass, podUid } = placement
    if (released.has(podUid)) {
      if (gone) released.delete(podUid)
      return
    }
    if (!open.has(podUid)) {
      if (!(yield* holds.place(placement))) return
      open.set(podUid, { podUid, pod: placement.pod, deploymentId: placement.deploymentId, organization, hostClass, gpus, silent: false, failing: null })
    }
    const before = open.get(podUid)
    if (before === undefined) return
    if (!gone && hold.released === null) {
      const silent = silentSince !== null
      if (silent !== before.silent) yield* holds.silent(podUid, silentSince)
      if (failing?.ends !== before.failing?.ends || failing?.nextStartAt !== before.failing?.nextStartAt) yield* holds.failing(podUid, failing)
      open.set(podUid, { ...before, silent, failing })
      return
    }
    yield* holds.release(podUid, hold.released?.at ?? null)
    open.delete(podUid)
    if (!gone) released.add(podUid)
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
      for (const uid of [...known.open.keys()]) {
        if (uid === pod?.metadata.uid) continue
        yield* holds.release(uid, null)
        known.open.delete(uid)
      }
      if (pod !== undefined) yield* record(pod, known, false)
      if (known.open.size === 0 && known.released.size === 0) pods.delete(name)
    }),
    record: Effect.fnUntraced(function* (pod) {
      const { open, released } = pods.get(pod.metadata.name) ?? {}
      const uid = pod.metadata.uid ?? ""
      if (open?.has(uid) === true || released?.has(uid) === true) return
      const hold = yield* holdOf(pod)
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
  const look = Effect.flatMap(queue.size, (pending) => (pending === 0 && cluster.gonePods.size === 0 ? holds.recordObservation : Effect.void))
  const counted = makeHoldMetrics(keeper.held)
  yield* Effect.addFinalizer(() => counted.none)
  yield* counted.count.pipe(
    Effect.andThen(look),
    Effect.timeout("10 seconds"),
    Effect.sandbox,
    Effect.ignore,
    Effect.schedule(Schedule.spaced(passIntervalMillis)),
    Effect.forkScoped
  )
  return { enqueue: queue.add, record: keeper.record }
})
