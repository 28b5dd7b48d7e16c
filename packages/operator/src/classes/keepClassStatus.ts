import type { ClassCapacity } from "@seatrial/domain"
import { KubeClient, type KubeError, WorkQueue } from "@seatrial/kube"
import { HostClasses } from "@seatrial/store"
import { Clock, Duration, Effect, Equal, Option, type Scope } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import type { GpuLedger } from "../gather/capacity/GpuLedger.ts"
import { noHardware } from "../gather/capacity/hardware.ts"
import type { HostClassStatus } from "../resources/HostClassResource.ts"
import { type PodClass, toPodClass } from "../resources/PodClass.ts"
import { WatchedHostClass } from "../resources/WatchedHostClass.ts"
import { hostClassStatus, modelsByClass } from "./hostClassStatus.ts"

/** Changes within this time are written together. */
const pause = Duration.seconds(10)

const noCapacity = { nodes: 0, openNodes: 0, gpus: 0, freeGpus: 0, engines: 0 }

/**
 * Errors that need no report: another version of the object, a deleted object, or a missing permission (of an older
 * chart).
 */
const isPassing = ({ reason }: KubeError) => reason === "Conflict" || reason === "NotFound" || reason === "Denied"

/** The capacity of a class for the API. */
const classCapacity = (ledger: GpuLedger, podClass: PodClass): ClassCapacity => {
  const { freeGpus, gpus } = ledger.gpus(podClass)
  return { gpus, free_gpus: freeGpus, free_engines: Math.max(0, ledger.freeSlots(podClass, "")) }
}

/**
 * Whether this installation writes the status. If several installations share the class, one of them does: each knows
 * only its own pods and models.
 */
const isWriter = ({ metadata, status }: WatchedHostClass, namespace: string): boolean =>
  (status?.writtenBy ?? namespace) === namespace && metadata.deletionTimestamp === undefined

/** Writes the status if it has changed. Returns true if it could not be written and must be tried again. */
const writeStatus = Effect.fnUntraced(function* ({ metadata: { name, resourceVersion }, status: before }: WatchedHostClass, status: HostClassStatus) {
  if (before !== undefined && Equal.equals(before, status)) return false
  const kube = yield* KubeClient
  const metadata = { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
  const patch = { apiVersion: "seatrial.dev/v1alpha1", kind: "HostClass", metadata, status }
  const failed = yield* kube.applyStatus(WatchedHostClass, patch).pipe(
    Effect.as(null),
    Effect.catchIf(isPassing, (error) => Effect.succeed(error))
  )
  if (failed?.reason === "Denied") yield* Effect.logDebug(`the status of the host class ${name} cannot be written: ${failed.message}`)
  return failed !== null && failed.reason !== "Denied"
})

/**
 * Writes the statuses that have changed, and records the capacities. Returns true if a status could not be written and
 * must be tried again.
 */
const writeStatuses = Effect.fnUntraced(function* ({ deployments, hostClasses, ledger, namespace }: Cluster) {
  const now = yield* Clock.currentTimeMillis
  const users = modelsByClass(yield* deployments.list())
  const capacities = new Map<string, ClassCapacity>()
  let isIncomplete = false
  for (const object of yield* hostClasses.list()) {
    const { name } = object.metadata
    const podClass = Option.getOrNull(toPodClass(object))
    if (podClass !== null) capacities.set(name, classCapacity(ledger, podClass))
    if (!isWriter(object, namespace)) continue
    const capacity = podClass === null ? noCapacity : ledger.capacity(podClass)
    const hardware = podClass === null ? noHardware : ledger.hardware(podClass)
    const isLeft = yield* writeStatus(object, hostClassStatus({ object, capacity, hardware, models: users.get(name) ?? [], namespace, now }))
    isIncomplete ||= isLeft
  }
  yield* (yield* HostClasses).recordCapacities(capacities)
  return isIncomplete
})

/**
 * Keeps the status of each host class current until the scope closes. The returned effect requests an update, which
 * follows after a short delay and covers all requests until then.
 */
export const keepClassStatus = Effect.fnUntraced(function* (
  cluster: Cluster
): Effect.fn.Return<Effect.Effect<void>, never, HostClasses | KubeClient | Scope.Scope> {
  const queue = yield* WorkQueue.make({
    name: "host-class-status",
    concurrency: 1,
    work: (_: "all") => Effect.map(writeStatuses(cluster), (isIncomplete) => (isIncomplete ? Option.some(pause) : Option.none()))
  })
  const enqueue = queue.addAfter("all", pause)
  yield* enqueue
  return enqueue
})
