import { KubeClient } from "@seatrial/kube"
import { HostClassResource } from "@seatrial/operator"
import { HostClasses } from "@seatrial/store"
import { Effect, Option, Schedule } from "effect"
import { StartError } from "./StartError.ts"

/**
 * Waits until the operator has reported the host classes of the cluster to the API. Without them nothing can be
 * deployed. The local cluster always has some. A cluster of the user may have none, or only invalid ones: then this
 * returns lines that say so, and the system is ready nevertheless.
 */
export const awaitHostClasses = Effect.fn("awaitHostClasses")(function* (cluster: { readonly local: boolean; readonly kubeconfig: string }) {
  const mirrored = yield* HostClasses
  const kube = yield* KubeClient
  const missing = (what: string) => [
    what,
    `  kubectl --kubeconfig ${cluster.kubeconfig} apply -f k8s/samples/hostclass-h100.yaml    (after you have adapted it to your GPUs)`
  ]
  if (!cluster.local && (yield* kube.list(HostClassResource, {})).length === 0) {
    return missing("The cluster has no HostClass yet. Nothing can be deployed without one. Create one; the operator picks it up immediately:")
  }
  const reported = yield* mirrored.list.pipe(
    Effect.repeat({ schedule: Schedule.spaced("50 millis"), until: (list) => list.length > 0 }),
    Effect.timeoutOption("30 seconds")
  )
  if (Option.isSome(reported)) return []
  if (cluster.local) return yield* new StartError({ message: "The operator read no host class within 30 seconds. See seatrial.log in the state folder." })
  return missing("The cluster has HostClasses, but the operator could read none of them: see the log. Nothing can be deployed until one is valid.")
})
