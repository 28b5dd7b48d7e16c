import type { ClassCapacity } from "@seatrial/domain"
import { KubeClient, type KubeError, WorkQueue } from "@seatrial/kube"
import { HostClasses } from "@seatrial/store"
import { Clock, Duration, Effect, Equal, Option, type Scope } from "effect"
import type { Cluster } from "../gather/Cluster.ts"
import { HostClassResource, toPodClass } from "../resources/HostClassResource.ts"
import { hostClassStatus, modelsByClass } from "./hostClassStatus.ts"

/** Changes within so much time are told of together. */
const pause = Duration.seconds(10)

const noCapacity = { nodes: 0, openNodes: 0, gpus: 0, freeGpus: 0, engines: 0 }

/** What another version of the object, none, or missing permission (an older chart's) answers. */
const isPassing = ({ reason }: KubeError) => reason === "Conflict" || reason === "NotFound" || reason === "Denied"

/** Writes the statuses that say something else than what is so. True where one could not be written and has to be tried again. */
const tellAll = Effect.fnUntraced(function* ({ deployments, hostClasses, ledger, namespace }: Cluster) {
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
    // Of several installations that share the class one tells: each sees its own pods and models only.
    if ((object.status?.writtenBy ?? namespace) !== namespace || object.metadata.deletionTimestamp !== undefined) continue
    const { name, resourceVersion } = object.metadata
    const capacity = podClass === null ? noCapacity : ledger.capacity(podClass)
    const status = hostClassStatus({ object, capacity, models: users.get(name) ?? [], namespace, now })
    if (object.status !== undefined && Equal.equals(object.status, status)) continue
    const metadata = { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
    const told = { apiVersion: "seatrial.dev/v1alpha1", kind: "HostClass", metadata, status }
    const failed = yield* kube.applyStatus(HostClassResource, told).pipe(
      Effect.as(null),
      Effect.catchIf(isPassing, (error) => Effect.succeed(error))
    )
    if (failed?.reason === "Denied") yield* Effect.logDebug(`the status of the host class ${name} cannot be written: ${failed.message}`)
    else if (failed !== null) again = true
  }
  yield* (yield* HostClasses).recordCapacities(capacities)
  return again
})

/** Tells in each host class what it offers and who uses it, for as long as the scope. What it gives asks for a look, which comes a little later, once for all that asked. */
export const keepClassStatus = Effect.fnUntraced(function* (
  cluster: Cluster
): Effect.fn.Return<Effect.Effect<void>, never, HostClasses | KubeClient | Scope.Scope> {
  const queue = yield* WorkQueue.make({
    name: "host-class-status",
    concurrency: 1,
    work: (_: "all") => Effect.map(tellAll(cluster), (again) => (again ? Option.some(pause) : Option.none()))
  })
  const look = queue.addAfter("all", pause)
  yield* look
  return look
})
