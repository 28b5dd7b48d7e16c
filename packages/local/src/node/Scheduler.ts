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

const make = Effect.gen(function* () {
  const kube = yield* KubeClient
  const pods = yield* Reflector.make(BoundPod, {})
  const nodes = yield* Reflector.make(Node, {})
  yield* pods.synced
  yield* nodes.synced
  /** Accepted bindings that the watch has not delivered yet, by the uid of the pod. Their GPUs count as used. */
  const assumed = new Map<string, string>()

  const event = (pod: BoundPod, type: "Normal" | "Warning", reason: string, message: string) =>
    recordEvent(kube, { object: { apiVersion: "v1", kind: "Pod", metadata: pod.metadata }, component, type, reason, message })

  const carryOut = Effect.fnUntraced(function* (placement: Placement): Effect.fn.Return<void, KubeError> {
    const { pod } = placement
    const { name } = pod.metadata
    const namespace = namespaceOf(pod)
    if (placement._tag === "Bind") {
      const metadata = { name, namespace, ...(pod.metadata.uid === undefined ? {} : { uid: pod.metadata.uid }) }
      const binding = { apiVersion: "v1", kind: "Binding", metadata, target: { apiVersion: "v1", kind: "Node", name: placement.node } }
      yield* kube.create(bindingOf(name), binding)
      assumed.set(uidOf(pod), placement.node)
      return yield* event(pod, "Normal", "Scheduled", `Successfully assigned ${namespace}/${name} to ${placement.node}`)
    }
    const before = pod.status?.conditions?.find(({ type }) => type === "PodScheduled")
    if (before?.status === "False" && before.message === placement.message) return
    const lastTransitionTime = before?.status === "False" ? (before.lastTransitionTime ?? (yield* now)) : yield* now
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: placement.message, lastTransitionTime }
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, status: { phase: "Pending", conditions: [condition] } }
    yield* kube.applyStatus(BoundPod, object)
    yield* event(pod, "Warning", "FailedScheduling", placement.message)
  })

  const pass = Effect.gen(function* () {
    const known = yield* pods.list()
    const alive = new Set<string>()
    const withAssumed = known.map((pod): BoundPod => {
      const uid = uidOf(pod)
      alive.add(uid)
      if (pod.spec.nodeName !== undefined) assumed.delete(uid)
      const node = assumed.get(uid)
      return node === undefined ? pod : { ...pod, spec: { ...pod.spec, nodeName: node } }
    })
    for (const uid of assumed.keys()) if (!alive.has(uid)) assumed.delete(uid)
    let failure: KubeError | undefined
    for (const placement of placePods(withAssumed, yield* nodes.list())) {
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
