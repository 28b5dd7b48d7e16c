import { DeploymentId } from "@seatrial/domain"
import { defineResource, KubeClient, keyOf, type WatchEvent } from "@seatrial/kube"
import { Effect, Option, Queue, Schedule, Schema, type Scope, Stream } from "effect"
import { ModelDeployment } from "../resources/ModelDeployment.ts"
import { finalizer } from "../resources/objectNames.ts"
import { releaseFields } from "../resources/WatchedDeployment.ts"

const { Struct, optionalKey: optional } = Schema

/** The services that release an object. */
const UnmappedDeployment = defineResource({
  ...ModelDeployment,
  schema: Struct({
    metadata: Struct(releaseFields),
    status: optional(Struct({ deploymentId: optional(DeploymentId) }).pipe(Schema.catchDecoding(() => Effect.succeedNone)))
  })
})
export type UnmappedDeployment = typeof UnmappedDeployment.schema.Type

/**
 * The `ModelDeployment`s in namespaces without an organization that are being deleted and that have the operator's
 * finalizer, because their namespace had an organization before.
 */
export interface Unmapped {
  readonly get: (key: string) => Option.Option<UnmappedDeployment>
  /** Their keys (`namespace/name`). */
  readonly changes: Stream.Stream<string>
}

/** Number of unprocessed keys from which the watch pauses. */
const maxChanges = 256

const isWaiting = ({ metadata: { deletionTimestamp, finalizers = [] } }: UnmappedDeployment): boolean =>
  deletionTimestamp !== undefined && finalizers.includes(finalizer)

/** Takes over what the watch reports. Returns the keys that wait for their release. */
const takeEvent = (waiting: Map<string, UnmappedDeployment>, event: WatchEvent<UnmappedDeployment>): ReadonlyArray<string> => {
  const set = (object: UnmappedDeployment) => {
    const key = keyOf(object)
    if (!isWaiting(object)) {
      waiting.delete(key)
      return []
    }
    waiting.set(key, object)
    return [key]
  }
  switch (event._tag) {
    case "Synced":
      waiting.clear()
      return event.items.flatMap(set)
    case "Changed":
      return set(event.object)
    case "Removed":
      waiting.delete(keyOf(event.object))
      return []
    case "RemovedUnreadable":
      waiting.delete(event.key)
      return []
  }
}

/** Watches all namespaces except these. If they cannot be read, that is logged and tried again every minute. */
export const watchUnmapped = Effect.fnUntraced(function* (mapped: ReadonlyArray<string>): Effect.fn.Return<Unmapped, never, KubeClient | Scope.Scope> {
  const kube = yield* KubeClient
  const waiting = new Map<string, UnmappedDeployment>()
  const changes = yield* Queue.bounded<string>(maxChanges)
  const fieldSelector = mapped.map((namespace) => `metadata.namespace!=${namespace}`).join(",")
  yield* kube.watch(UnmappedDeployment, { fieldSelector }).pipe(
    Stream.runForEach((event) => Effect.forEach(takeEvent(waiting, event), (key) => Queue.offer(changes, key), { discard: true })),
    Effect.tapError(({ message }) =>
      Effect.logWarning(`ModelDeployments of namespaces without an organization cannot be watched, so deleted ones keep their finalizer: ${message}`)
    ),
    Effect.retry(Schedule.spaced("1 minute")),
    Effect.ignore,
    Effect.forkScoped
  )
  return { get: (key) => Option.fromNullishOr(waiting.get(key)), changes: Stream.fromQueue(changes) }
})
