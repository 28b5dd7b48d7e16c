import type { ClassCapacity } from "@seatrial/domain"
import { KubeClient, type KubeError, WorkQueue } from "@seatrial/kube"
import { HostClasses } from "@seatrial/store"
import { Clock, Duration, Effect, Equal, Option, type Scope } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { HostClassResource, toPodClass } from "../resources/HostClassResource.ts"
import { hostClassStatus, modelsByClass } from "./hostClassStatus.ts"

/** Changes within this time are written together. */
const pause = Duration.seconds(10)

const noCapacity = { nodes: 0, openNodes: 0, gpus: 0, freeGpus: 0, engines: 0 }

/**
 * Errors that need no report: another version of the object, a deleted object, or a missing permission (of an older
 * chart).
 */
const isPassing = ({ reason }: KubeError) => reason === "Conflict" || reason === "NotFound" || reason === "Denied"

/** Writes the statuses that have changed. Returns true if one could not be written and must be tried again. */
const writeStatuses = Effect.fnUntraced(function* ({ deployments, hostClasses, ledger, namespace }: Cluster) {
  const kube = yield* KubeClient
  const now = yield* Clock.currentTimeMillis
  const users = modelsByClass(yield* deployments.list())
  let again = false
  const capacities = new Map<string, ClassCapacity>()
  for (const object of yield* hostClasses.list()) {
    const podClass = Option.getOrNull(toPodClass(object))
    if (podClass !== null) {
      const { freeGpus, gpus } = ledger.gpus(podClass)
      capacities.set(object.metadata.name, { gpus, free_gpus: freeGpus, free_engines: Math.max(0, ledger.freeSlots(podClass, "")) })
    }
    // If several installations share the class, one of them writes the status: each knows only its own pods and models.
    if ((object.status?.writtenBy ?? namespace) !== namespace || object.metadata.deletionTimestamp !== undefined) continue
    const { name, resourceVersion } = object.metadata
    const capacity = podClass === null ? noCapacity : ledger.capacity(podClass)
    const status = hostClassStatus({ object, capacity, models: users.get(name) ?? [], namespace, now })
    if (object.status !== undefined && Equal.equals(object.status, status)) continue
    const metadata = { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
    const patch = { apiVersion: "seatrial.dev/v1alpha1", kind: "HostClass", metadata, status }
    const failed = yield* kube.applyStatus(HostClassResource, patch).pipe(
      Effect.as(null),
      Effect.catchIf(isPassing, (error) => Effect.succeed(error))
    )
    if (failed?.reason === "Denied") yield* Effect.logDebug(`the status of the host class ${name} cannot be written: ${failed.message}`)
    else if (failed !== null) again = true
  }
  yield* (yield* HostClasses).recordCapacities(capacities)
  return again
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
    work: (_: "all") => Effect.map(writeStatuses(cluster), (again) => (again ? Option.some(pause) : Option.none()))
  })
  const look = queue.addAfter("all", pause)
  yield* look
  return look
})
