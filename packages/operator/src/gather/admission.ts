import { defineResource, KubeClient, objectSchema, open } from "@seatrial/kube"
import { Effect, Schema } from "effect"

const workload = (version: "v1beta2" | "v1beta1") =>
  defineResource({
    group: "kueue.x-k8s.io",
    version,
    plural: "workloads",
    kind: "Workload",
    namespaced: true,
    schema: objectSchema({
      status: Schema.optionalKey(
        open({
          conditions: Schema.optionalKey(Schema.Array(open({ type: Schema.String, status: Schema.String, message: Schema.optionalKey(Schema.String) })))
        })
      )
    })
  })
const newer = workload("v1beta2")
/** For older versions of Kueue. The fields are the same in both versions. */
const older = workload("v1beta1")

/** Why Kueue holds a pod back, as Kueue reports it. Null if it reports nothing or the operator may not read it. */
export const admissionOf = Effect.fnUntraced(function* (uid: string, namespace: string): Effect.fn.Return<string | null, never, KubeClient> {
  const kube = yield* KubeClient
  const selection = { namespace, labelSelector: `kueue.x-k8s.io/job-uid=${uid}` }
  const workloads = yield* kube.list(newer, selection).pipe(
    Effect.catchIf(
      ({ reason }) => reason === "NotFound",
      () => kube.list(older, selection)
    ),
    Effect.catch(() => Effect.succeed([]))
  )
  const reason = workloads[0]?.status?.conditions?.find(({ status, type }) => type === "QuotaReserved" && status === "False")?.message
  return reason === undefined || reason === "" ? null : reason.slice(0, 300)
})
