import { CustomResourceDefinition, KubeClient, type KubeObject, Namespace } from "@seatrial/kube"
import { customResourceDefinitions, HostClassResource } from "@seatrial/operator"
import { Effect, Schedule } from "effect"

/** Prepares a cluster for the operator: the namespace, the custom resource definitions, and host classes. */
export const install = Effect.fn("install")(function* (hostClasses: ReadonlyArray<KubeObject>) {
  const kube = yield* KubeClient
  yield* kube.apply(Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: "seatrial" } })
  yield* Effect.forEach(Object.values(customResourceDefinitions), (definition) => kube.apply(CustomResourceDefinition, definition))
  // A definition is served a moment after it was stored.
  yield* Effect.forEach(hostClasses, (hostClass) => kube.apply(HostClassResource, hostClass)).pipe(
    Effect.retry(Schedule.spaced("100 millis").pipe(Schedule.upTo({ times: 50 })))
  )
})
