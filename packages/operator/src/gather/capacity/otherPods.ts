import { defineResource, KubeClient, type KubeError, keyOf, Pod, type WatchEvent } from "@seatrial/kube"
import { Deferred, Effect, Queue, Schedule, Schema, type Scope, Stream } from "effect"
import type { GpuLedger } from "./GpuLedger.ts"
import { quantity } from "./nodeFit.ts"
import type { Taken } from "./takenGpus.ts"

const { Array: List, Struct, optionalKey: optional, String: Text } = Schema

const Quantities = Schema.Record(Text, Schema.Union([Text, Schema.Number]))
const Container = Struct({ restartPolicy: optional(Text), resources: optional(Struct({ requests: optional(Quantities), limits: optional(Quantities) })) })

/** A pod of another tenant: its node and its resources. Nothing else is decoded. */
export const OtherPod = defineResource({
  ...Pod,
  schema: Struct({
    metadata: Struct({ name: Text, namespace: optional(Text), uid: optional(Text), resourceVersion: optional(Text) }),
    spec: optional(Struct({ nodeName: optional(Text), containers: List(Container), initContainers: optional(List(Container)) }))
  })
})
type OtherPod = typeof OtherPod.schema.Type
type Container = typeof Container.Type

/** Extended resources, for example `nvidia.com/gpu`, by name. */
const amountsOf = ({ resources }: Container): ReadonlyArray<readonly [string, number]> =>
  Object.entries({ ...resources?.requests, ...resources?.limits })
    .filter(([resource]) => resource.includes("/"))
    .map(([resource, amount]) => [resource, quantity(amount)])

const sum = (containers: ReadonlyArray<Container>): Map<string, number> => {
  const sums = new Map<string, number>()
  for (const [resource, amount] of containers.flatMap(amountsOf)) sums.set(resource, (sums.get(resource) ?? 0) + amount)
  return sums
}

/**
 * The extended resources that the pod takes from its node; undefined if it takes none. As the scheduler counts them: an
 * init container runs before the others, except for a sidecar (`restartPolicy: Always`), which stays.
 */
export const takenByOther = ({ spec }: OtherPod): Taken | undefined => {
  const { containers = [], initContainers = [], nodeName } = spec ?? {}
  const amounts = sum([...containers, ...initContainers.filter(({ restartPolicy }) => restartPolicy === "Always")])
  for (const [resource, amount] of initContainers.flatMap(amountsOf)) amounts.set(resource, Math.max(amounts.get(resource) ?? 0, amount))
  for (const [resource, amount] of amounts) if (amount === 0) amounts.delete(resource)
  if (nodeName === undefined || amounts.size === 0) return undefined
  return { node: nodeName, hostClass: "", organization: undefined, unschedulable: false, ending: false, amounts }
}

/** Takes over what the watch reports. Only pods with extended resources are remembered, by key. */
const makeTakeEvent = (ledger: Pick<GpuLedger, "setOther">) => {
  const known = new Set<string>()
  const set = (key: string, taken: Taken | undefined): boolean => {
    if (taken === undefined && !known.has(key)) return false
    if (taken === undefined) known.delete(key)
    else known.add(key)
    ledger.setOther(key, taken)
    return true
  }
  const replace = (items: ReadonlyArray<OtherPod>): boolean => {
    const listed = new Set(items.map(keyOf))
    const gone = [...known].filter((key) => !listed.has(key)).map((key) => set(key, undefined))
    return [...gone, ...items.map((pod) => set(keyOf(pod), takenByOther(pod)))].some((hasChanged) => hasChanged)
  }
  /** Returns whether the GPUs that are taken may have changed. */
  return (event: WatchEvent<OtherPod>): boolean => {
    switch (event._tag) {
      case "Synced":
        return replace(event.items)
      case "Changed":
        return set(keyOf(event.object), takenByOther(event.object))
      case "Removed":
        return set(keyOf(event.object), undefined)
      case "RemovedUnreadable":
        return set(event.key, undefined)
    }
  }
}

/**
 * The pods outside the operator's namespace that are on a node and have not ended. The API server sends no others.
 */
export const watchOtherPods = (namespace: string) =>
  Stream.unwrap(
    Effect.map(KubeClient, (kube) =>
      kube.watch(OtherPod, { fieldSelector: `metadata.namespace!=${namespace},spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed` })
    )
  )

/**
 * Counts the GPUs of these pods until the scope closes. Returns once they are counted, or if
 * they cannot be read: then that is logged and tried again every minute. The stream emits after changes.
 */
export const countOtherPods = Effect.fnUntraced(function* <R>(
  ledger: Pick<GpuLedger, "setOther">,
  pods: Stream.Stream<WatchEvent<OtherPod>, KubeError, R>
): Effect.fn.Return<Stream.Stream<void>, never, R | Scope.Scope> {
  const changes = yield* Queue.sliding<void>(1)
  const attempted = yield* Deferred.make<void>()
  const takeEvent = makeTakeEvent(ledger)
  const done = Effect.sync(() => Deferred.doneUnsafe(attempted, Effect.void))
  yield* pods.pipe(
    Stream.runForEach((event) => Effect.andThen(takeEvent(event) ? Queue.offer(changes, undefined) : Effect.void, done)),
    Effect.tapError(({ message }) =>
      Effect.andThen(Effect.logWarning(`the pods of other namespaces cannot be read, so their GPUs are not counted: ${message}`), done)
    ),
    Effect.retry(Schedule.spaced("1 minute")),
    Effect.ignore,
    Effect.forkScoped
  )
  yield* Deferred.await(attempted)
  return Stream.fromQueue(changes)
})
