import { defineResource, KubeClient, objectSchema, open } from "@seatrial/kube"
import { Effect, Schema } from "effect"

const Workload = defineResource({
  group: "kueue.x-k8s.io",
  version: "v1beta1",
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

/** What Kueue says of why it holds a pod back, in its own words; null where it says nothing, or may not be asked. */
export const admissionOf = Effect.fnUntraced(function* (uid: string, namespace: string): Effect.fn.Return<string | null, never, KubeClient> {
  const kube = yield* KubeClient
  const workloads = yield* Effect.catch(kube.list(Workload, { namespace, labelSelector: `kueue.x-k8s.io/job-uid=${uid}` }), () => Effect.succeed([]))
  const said = workloads[0]?.status?.conditions?.find(({ status, type }) => type === "QuotaReserved" && status === "False")?.message
  return said === undefined || said === "" ? null : said.slice(0, 300)
})
