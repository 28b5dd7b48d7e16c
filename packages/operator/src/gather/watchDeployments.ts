import { type KubeClient, type KubeError, Reflector } from "@seatrial/kube"
import { Effect, Option, Queue, Schedule, type Scope, Stream } from "effect"
import { WatchedDeployment } from "../resources/WatchedDeployment.ts"
import { compactDeployment } from "./compactDeployment.ts"

/** The `ModelDeployment`s of several namespaces. `changes` emits their keys (`namespace/name`). */
export interface Deployments {
  readonly get: (name: string, namespace: string) => Effect.Effect<Option.Option<WatchedDeployment>>
  readonly list: () => Effect.Effect<ReadonlyArray<WatchedDeployment>>
  /**
   * Whether the status of an object names that deployment. Also true while a namespace cannot be read or is not read
   * yet.
   */
  readonly mayShow: (deploymentId: string) => Effect.Effect<boolean>
  readonly changes: Stream.Stream<string, KubeError>
  readonly synced: Effect.Effect<void, KubeError>
}

/** Number of unprocessed keys from which the watches of other namespaces pause. */
const maxChanges = 256

const byDeployment = "deployment"
const options = { keep: compactDeployment, indexBy: { [byDeployment]: ({ status }: WatchedDeployment) => status?.deploymentId } }

/**
 * Watches the operator's own namespace, which is required, and other namespaces. A namespace that cannot be read is
 * tried again every minute and delays nothing else.
 */
export const watchDeployments = Effect.fnUntraced(function* (
  own: string,
  otherNamespaces: ReadonlyArray<string>
): Effect.fn.Return<Deployments, never, KubeClient | Scope.Scope> {
  const ownReflector = yield* Reflector.make(WatchedDeployment, { namespace: own }, options)
  const otherReflectors = new Map<string, Reflector<WatchedDeployment>>()
  const otherChanges = yield* Queue.bounded<string>(maxChanges)
  const watch = Effect.fnUntraced(
    function* (namespace: string) {
      const reflector = yield* Reflector.make(WatchedDeployment, { namespace }, options)
      yield* reflector.synced
      otherReflectors.set(namespace, reflector)
      return yield* Stream.runForEach(reflector.changes, (key) => Queue.offer(otherChanges, key))
    },
    (effect, namespace) =>
      effect.pipe(
        Effect.scoped,
        Effect.ensuring(Effect.sync(() => otherReflectors.delete(namespace))),
        Effect.tapError(({ message }) => Effect.logWarning(`the ModelDeployments of the namespace ${namespace} cannot be watched: ${message}`)),
        Effect.retry(Schedule.spaced("1 minute")),
        Effect.ignore
      )
  )
  for (const namespace of otherNamespaces) yield* Effect.forkScoped(watch(namespace))
  return {
    // The status is parsed once for each caller.
    get: (name, namespace) =>
      Effect.map(
        (namespace === own ? ownReflector : otherReflectors.get(namespace))?.get(name, namespace) ?? Effect.succeedNone,
        Option.map((deployment) => ({ ...deployment }))
      ),
    list: () =>
      Effect.map(
        Effect.forEach([ownReflector, ...otherReflectors.values()], (reflector) => reflector.list()),
        (lists) => lists.flat()
      ),
    mayShow: (id) =>
      Effect.map(
        Effect.forEach([ownReflector, ...otherReflectors.values()], (reflector) => reflector.listBy(byDeployment, id)),
        (lists) => otherNamespaces.some((namespace) => !otherReflectors.has(namespace)) || lists.some((list) => list.length > 0)
      ),
    changes: Stream.merge(ownReflector.changes, Stream.fromQueue(otherChanges)),
    synced: ownReflector.synced
  }
})
