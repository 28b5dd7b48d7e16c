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
/** Of a Kueue that does not know the newer one; what is read is the same in both. */
const older = workload("v1beta1")

/** What Kueue says of why it holds a pod back, in its own words; null where it says nothing, or may not be asked. */
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
  const said = workloads[0]?.status?.conditions?.find(({ status, type }) => type === "QuotaReserved" && status === "False")?.message
  return said === undefined || said === "" ? null : said.slice(0, 300)
})
