import { join } from "node:path"
import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { eventually } from "../e2e/eventually.ts"
import type { RealCluster } from "./RealCluster.ts"

const gate = "kueue.x-k8s.io/admission"

/** Holds pods of a queue back from the scheduler as Kueue's webhook does, by the API server's own means. */
export const holdQueued = [
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicy",
    metadata: { name: "hold-queued" },
    spec: {
      failurePolicy: "Fail",
      reinvocationPolicy: "Never",
      matchConstraints: { resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }] },
      matchConditions: [{ name: "queued", expression: "has(object.metadata.labels) && 'kueue.x-k8s.io/queue-name' in object.metadata.labels" }],
      mutations: [
        {
          patchType: "ApplyConfiguration",
          applyConfiguration: { expression: `Object{spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name: "${gate}"}]}}` }
        }
      ]
    }
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingAdmissionPolicyBinding",
    metadata: { name: "hold-queued" },
    spec: { policyName: "hold-queued" }
  }
]

/** As much of Kueue's definition as is read here. */
const workloads = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "workloads.kueue.x-k8s.io", annotations: { "api-approved.kubernetes.io": "unapproved, a stand-in for tests" } },
  spec: {
    group: "kueue.x-k8s.io",
    scope: "Namespaced",
    names: { plural: "workloads", singular: "workload", kind: "Workload", listKind: "WorkloadList" },
    versions: [
      {
        name: "v1beta2",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        subresources: { status: {} }
      }
    ]
  }
}

/** Part of a pod's metadata. */
interface Held {
  readonly name: string
  readonly uid?: string | undefined
}

/** What Kueue does to the pods of its queues, done by a test: a gate, a Workload for each pod that says why it waits, and the gate's removal. */
export const kueueStandIn = Effect.fnUntraced(function* ({ command, kube, namespace }: RealCluster, queueName: string) {
  const apply = (objects: ReadonlyArray<unknown>) =>
    command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) })
  yield* apply([workloads, ...holdQueued])
  yield* command("kubectl", ["wait", "--for=condition=Established", "crd/workloads.kueue.x-k8s.io", "--timeout=300s"])
  yield* command("kubectl", ["apply", "-f", join(import.meta.dirname, "../../k8s/samples/kueue-words.yaml")])
  // The policy is in force a moment after it was taken.
  const probe = { apiVersion: "v1", kind: "Pod", metadata: { name: "probe", namespace, labels: { "kueue.x-k8s.io/queue-name": queueName } } }
  const spec = { containers: [{ name: "none", image: "none" }] }
  const tried = command("kubectl", ["create", "--dry-run=server", "-o", "jsonpath={.spec.schedulingGates[*].name}", "-f", "-"], {
    input: JSON.stringify({ ...probe, spec })
  })
  yield* eventually("pods of queues are held back", tried, (gates) => gates.includes(gate))

  const words = (pod: Held, status: "True" | "False", message: string, others: ReadonlyArray<unknown> = []) =>
    Effect.gen(function* () {
      const name = `pod-${pod.name}`
      const labels = { "kueue.x-k8s.io/job-uid": pod.uid ?? "" }
      yield* apply([{ apiVersion: "kueue.x-k8s.io/v1beta2", kind: "Workload", metadata: { name, namespace, labels }, spec: { queueName } }])
      const reason = status === "True" ? "QuotaReserved" : "Pending"
      const condition = { type: "QuotaReserved", status, reason, message, lastTransitionTime: new Date().toISOString() }
      const patch = JSON.stringify({ status: { conditions: [condition, ...others] } })
      yield* command("kubectl", ["patch", "workloads.kueue.x-k8s.io", name, `--namespace=${namespace}`, "--subresource=status", "--type=merge", "-p", patch])
    })
  return {
    says: (pod: Held, message: string) => words(pod, "False", message),
    admits: Effect.fnUntraced(function* (pod: Held) {
      yield* words(pod, "True", "Quota reserved in ClusterQueue gpus")
      yield* kube.mergePatch(Pod, pod.name, namespace, { spec: { schedulingGates: null } })
    }),
    /** The Workload loses its quota, and its pod is stopped: Kueue deletes the pod and creates none itself. */
    evicts: Effect.fnUntraced(function* (pod: Held, message: string) {
      const lastTransitionTime = new Date().toISOString()
      yield* words(pod, "False", message, [{ type: "Evicted", status: "True", reason: "Preempted", message, lastTransitionTime }])
      yield* kube.remove(Pod, pod.name, namespace, pod.uid === undefined ? {} : { uid: pod.uid })
    })
  }
})
