import { defineResource, KubeClient, type KubeError, Node, open, Reflector, WorkQueue } from "@seatrial/kube"
import { Effect, Layer, Option, Schema, Stream } from "effect"
import { now } from "./kubeTime.ts"
import { BoundPod, namespaceOf, uidOf } from "./PodObject.ts"
import { type Placement, placePods } from "./placePods.ts"
import { recordEvent } from "./recordEvent.ts"

/** The subresource that binds one pod. The server answers with a Status without a name. */
const bindingOf = (pod: string) =>
  defineResource({
    group: "",
    version: "v1",
    plural: `pods/${pod}/binding`,
    kind: "Binding",
    namespaced: true,
    schema: Schema.Struct({
      apiVersion: Schema.optionalKey(Schema.String),
      kind: Schema.optionalKey(Schema.String),
      metadata: open({ name: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed(pod))), namespace: Schema.optionalKey(Schema.String) }),
      target: Schema.optionalKey(Schema.Struct({ apiVersion: Schema.String, kind: Schema.String, name: Schema.String }))
    })
  })

const component = "seatrial-scheduler"

const recordPodEvent = (kube: KubeClient["Service"], pod: BoundPod, type: "Normal" | "Warning", reason: string, message: string) =>
  recordEvent(kube, { object: { apiVersion: "v1", kind: "Pod", metadata: pod.metadata }, component, type, reason, message })

/** Binds a pod to a node. `onBound` runs as soon as the server has accepted the binding. */
const bind = Effect.fnUntraced(function* (kube: KubeClient["Service"], pod: BoundPod, node: string, onBound: () => void) {
  const { name, uid } = pod.metadata
  const namespace = namespaceOf(pod)
  const metadata = { name, namespace, ...(uid === undefined ? {} : { uid }) }
  yield* kube.create(bindingOf(name), { apiVersion: "v1", kind: "Binding", metadata, target: { apiVersion: "v1", kind: "Node", name: node } })
  onBound()
  yield* recordPodEvent(kube, pod, "Normal", "Scheduled", `Successfully assigned ${namespace}/${name} to ${node}`)
})

/** Records on a pod why it stays pending, unless it says so already. */
const markUnschedulable = Effect.fnUntraced(function* (kube: KubeClient["Service"], pod: BoundPod, message: string) {
  const before = pod.status?.conditions?.find(({ type }) => type === "PodScheduled")
  if (before?.status === "False" && before.message === message) return
  const lastTransitionTime = before?.status === "False" ? (before.lastTransitionTime ?? (yield* now)) : yield* now
  const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message, lastTransitionTime }
  const metadata = { name: pod.metadata.name, namespace: namespaceOf(pod) }
  const object = { apiVersion: "v1", kind: "Pod", metadata, status: { phase: "Pending", conditions: [condition] } }
  yield* kube.applyStatus(BoundPod, object)
  yield* recordPodEvent(kube, pod, "Warning", "FailedScheduling", message)
})

/** Accepted bindings that the watch has not delivered yet, by the uid of the pod. Their GPUs count as used. */
type AssumedNodes = Map<string, string>

/** The pods with their assumed nodes. Forgets the bindings that the watch has delivered. */
const withAssumed = (pods: ReadonlyArray<BoundPod>, assumed: AssumedNodes): ReadonlyArray<BoundPod> => {
  const alive = new Set(pods.map(uidOf))
  for (const uid of assumed.keys()) if (!alive.has(uid)) assumed.delete(uid)
  return pods.map((pod) => {
    const uid = uidOf(pod)
    if (pod.spec.nodeName !== undefined) assumed.delete(uid)
    const node = assumed.get(uid)
    return node === undefined ? pod : { ...pod, spec: { ...pod.spec, nodeName: node } }
  })
}

const make = Effect.gen(function* () {
  const kube = yield* KubeClient
  const pods = yield* Reflector.make(BoundPod, {})
  const nodes = yield* Reflector.make(Node, {})
  yield* pods.synced
  yield* nodes.synced
  const assumed: AssumedNodes = new Map()

  const carryOut = (placement: Placement): Effect.Effect<void, KubeError> =>
    placement._tag === "Bind"
      ? bind(kube, placement.pod, placement.node, () => assumed.set(uidOf(placement.pod), placement.node))
      : markUnschedulable(kube, placement.pod, placement.message)

  const pass = Effect.gen(function* () {
    let failure: KubeError | undefined
    for (const placement of placePods(withAssumed(yield* pods.list(), assumed), yield* nodes.list())) {
      yield* carryOut(placement).pipe(
        // The pod was deleted or changed. The watch delivers the new state.
        Effect.catchIf(
          ({ reason }) => reason === "NotFound" || reason === "Conflict",
          () => Effect.void
        ),
        Effect.catch((error) =>
          Effect.sync(() => {
            failure = error
          })
        )
      )
    }
    if (failure !== undefined) return yield* failure
    return Option.none()
  })

  const queue = yield* WorkQueue.make({ concurrency: 1, work: () => pass })
  yield* Stream.merge(pods.changes, nodes.changes).pipe(
    Stream.runForEach(() => queue.add("all")),
    Effect.tapError((error) => Effect.logError(`The scheduler cannot watch: ${error.message}`)),
    Effect.forkScoped
  )
})

/**
 * Binds pending pods to nodes by their requests, selectors and tolerations, and records on a pod why it stays pending.
 * For clusters without a scheduler.
 */
export const Scheduler = { layer: Layer.effectDiscard(make) }
