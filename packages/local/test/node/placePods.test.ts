import { assert, describe, it } from "@effect/vitest"
import { type Node, quantity } from "@seatrial/kube"
import { Schema } from "effect"
import type { BoundPod } from "../../src/node/PodObject.ts"
import { needsOf, placePods } from "../../src/node/placePods.ts"

const gpu = "nvidia.com/gpu"
const machine = (
  name: string,
  gpus: number,
  more: { readonly labels?: Record<string, string>; readonly spec?: Node["spec"]; readonly ready?: boolean } = {}
): Node => ({
  metadata: { name, labels: { "nvidia.com/gpu.product": "H100", ...more.labels } },
  ...(more.spec === undefined ? {} : { spec: more.spec }),
  status: {
    allocatable: { cpu: "8", memory: "64Gi", pods: "4", [gpu]: String(gpus) },
    conditions: [{ type: "Ready", status: more.ready === false ? "False" : "True" }]
  }
})
const pod = (name: string, gpus: number, spec: Partial<BoundPod["spec"]> = {}): BoundPod => ({
  metadata: { name, namespace: "default", uid: name, creationTimestamp: "2026-01-01T00:00:00Z" },
  spec: { containers: [{ name: "main", resources: { requests: { cpu: "1" }, limits: gpus === 0 ? {} : { [gpu]: gpus } } }], ...spec }
})

const tell = (pods: ReadonlyArray<BoundPod>, nodes: ReadonlyArray<Node>) =>
  placePods(pods, nodes).map((placement) => (placement._tag === "Bind" ? `${placement.pod.metadata.name} on ${placement.node}` : placement.message))

describe("placePods", () => {
  const affinity = (operator: string, values: ReadonlyArray<string>) => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: "nvidia.com/gpu.product", operator, values }] }] }
      }
    }
  })
  const tainted = machine("a", 8, { spec: { taints: [{ key: "gpu", value: "yes", effect: "NoSchedule" }] } })
  const cases: ReadonlyArray<readonly [promise: string, pods: ReadonlyArray<BoundPod>, nodes: ReadonlyArray<Node>, expected: ReadonlyArray<string>]> = [
    ["a limit without a request is a request", [pod("p", 2)], [machine("a", 1), machine("b", 2)], ["p on b"]],
    ["a pod takes the node that it fills best, so that whole nodes stay free", [pod("p", 1)], [machine("a", 8), machine("b", 1)], ["p on b"]],
    [
      "GPUs are given once: pods are placed as if those before them already ran",
      [pod("p", 2), pod("q", 2)],
      [machine("a", 2)],
      ["p on a", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."]
    ],
    [
      "a running pod holds its GPUs",
      [{ ...pod("r", 2), spec: { ...pod("r", 2).spec, nodeName: "a" } }, pod("p", 1)],
      [machine("a", 2)],
      ["0/1 nodes are available: 1 Insufficient nvidia.com/gpu."]
    ],
    [
      "a finished pod gives its GPUs back",
      [{ ...pod("r", 2), spec: { ...pod("r", 2).spec, nodeName: "a" }, status: { phase: "Succeeded" } }, pod("p", 1)],
      [machine("a", 2)],
      ["p on a"]
    ],
    [
      "the oldest pod comes first",
      [{ ...pod("late", 2), metadata: { ...pod("late", 2).metadata, creationTimestamp: "2026-01-02T00:00:00Z" } }, pod("p", 2)],
      [machine("a", 2)],
      ["p on a", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."]
    ],
    [
      "every reason is counted over the nodes",
      [pod("p", 2, { nodeSelector: { zone: "x" } })],
      [machine("a", 8), machine("b", 1, { labels: { zone: "x" } })],
      ["0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."]
    ],
    [
      "In keeps to the listed values",
      [pod("p", 1, affinity("In", ["H200"]))],
      [machine("a", 8), machine("b", 8, { labels: { "nvidia.com/gpu.product": "H200" } })],
      ["p on b"]
    ],
    [
      "NotIn keeps away from them",
      [pod("p", 1, affinity("NotIn", ["H100"]))],
      [machine("a", 8)],
      ["0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."]
    ],
    ["Exists wants the label alone", [pod("p", 1, affinity("Exists", []))], [machine("a", 8)], ["p on a"]],
    ["a taint keeps a pod away", [pod("p", 1)], [tainted], ["0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}."]],
    ["unless it is tolerated by value", [pod("p", 1, { tolerations: [{ key: "gpu", value: "yes", effect: "NoSchedule" }] })], [tainted], ["p on a"]],
    ["or by its mere existence", [pod("p", 1, { tolerations: [{ operator: "Exists" }] })], [tainted], ["p on a"]],
    [
      "a node that is not ready gets no pods",
      [pod("p", 0)],
      [machine("a", 8, { ready: false })],
      ["0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }."]
    ],
    [
      "a cordoned node gets no pods",
      [pod("p", 0)],
      [machine("a", 8, { spec: { unschedulable: true } })],
      ["0/1 nodes are available: 1 node(s) were unschedulable."]
    ],
    ["a cluster without nodes says so", [pod("p", 0)], [], ["no nodes available to schedule pods"]],
    ["a pod of another scheduler is not ours", [pod("p", 1, { schedulerName: "kueue" })], [machine("a", 8)], []],
    ["a gated pod waits", [pod("p", 1, { schedulingGates: [{ name: "kueue.x-k8s.io/admission" }] })], [machine("a", 8)], []],
    [
      "a node holds no more pods than it says",
      [1, 2, 3, 4, 5].map((each) => pod(`p${each}`, 0)),
      [machine("a", 0)],
      ["p1 on a", "p2 on a", "p3 on a", "p4 on a", "0/1 nodes are available: 1 Too many pods."]
    ]
  ]
  for (const [promise, pods, nodes, expected] of cases) it(promise, () => assert.deepStrictEqual(tell(pods, nodes), expected))

  const few = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8 }))
  it.prop("a node never gets more than its capacity", [Schema.Array(few), Schema.Array(few)], ([wants, haves]) => {
    const nodes = haves.map((have, index) => machine(`n${index}`, have))
    const placements = placePods(
      wants.map((want, index) => pod(`p${index}`, want)),
      nodes
    )
    return nodes.every((node) =>
      [gpu, "cpu", "pods"].every((resource) => {
        const used = placements.reduce(
          (sum, each) => (each._tag === "Bind" && each.node === node.metadata.name ? sum + (needsOf(each.pod).get(resource) ?? 0) : sum),
          0
        )
        return used <= quantity(node.status?.allocatable?.[resource])
      })
    )
  })
})
