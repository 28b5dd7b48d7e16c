import { Effect } from "effect"
import { refusals } from "../refusePods.ts"
import { simulatedProduct } from "../simulatedHostClass.ts"
import type { Edit } from "./Edit.ts"
import { type EditStage, namespace, hostClass as original } from "./EditStage.ts"

const hostClass = "hostclass/sim-small"

const restore = ({ cluster }: EditStage) =>
  cluster.command("kubectl", ["replace", "-f", "-"], { input: JSON.stringify(original) }).pipe(Effect.catch(({ message }) => Effect.succeed(message)))

const ofClass = (name: string, change: object): Edit => ({
  name: `host class: ${name}`,
  make: ({ patch }) => patch(hostClass, { spec: change }),
  undo: restore
})
const refusedClass = (name: string, change: object, refused: string): Edit => ({
  name: `host class: ${name}`,
  make: ({ patch }) => patch(hostClass, { spec: change }),
  refused
})

/** No pod can be created meanwhile. That is no matter for an engine that runs. */
const refusal = ({ name, objects }: ReturnType<typeof refusals>[number]): Edit => ({
  name: `namespace: pods are refused (${name})`,
  make: ({ apply }) => apply(...objects),
  undo: ({ cluster }) =>
    cluster
      .command("kubectl", ["delete", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) })
      .pipe(Effect.catch(({ message }) => Effect.succeed(message)))
})

const onNodes = (name: string, make: ReadonlyArray<string>, undo: ReadonlyArray<string>): Edit => ({
  name: `nodes: ${name}`,
  make: ({ kubectl }) => kubectl(...make),
  undo: ({ kubectl }) => kubectl(...undo)
})

/** Removes objects of the operator for a moment and applies them again. */
const removed = (name: string, kind: string, which: string): Edit => ({
  name: `permissions: ${name}`,
  make: ({ apply, kubectl }) =>
    Effect.gen(function* () {
      const text = yield* kubectl("get", kind, which, "-o", "json")
      const { apiVersion, metadata, ...rest } = JSON.parse(text)
      const printed = yield* kubectl("delete", kind, which)
      yield* Effect.sleep("2 seconds")
      yield* apply({ apiVersion, ...rest, metadata: { name: metadata.name, ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) } })
      return printed
    })
})

/** Edits of host classes, nodes, permissions and the namespace. */
export const clusterEdits: ReadonlyArray<Edit> = [
  ofClass("its price", { pricePerGpuHour: "999999999999999" }),
  ofClass("its nodes are none", { nodeSelector: { zone: "nowhere" } }),
  ofClass("its image does not exist", { runtimes: [{ runtime: "reference", image: "nowhere.invalid/engine:1" }] }),
  ofClass("another resource of GPUs", { gpuResource: "example.com/gpu" }),
  ofClass("every field for pods", {
    priorityClassName: "missing",
    labels: { team: "x" },
    env: [{ name: "NCCL_DEBUG", value: "INFO" }],
    extraResources: { "rdma/hca": "1" },
    resourceClaims: [{ name: "nic", resourceClaimName: "missing" }]
  }),
  ofClass("no engine may be drained in time", { drainSeconds: 3_600, bootDeadlineSeconds: 1 }),
  ofClass("engines may be evicted", { evictable: true }),
  ofClass("a claim of weights that does not exist", { weightsClaim: "missing", weightsCache: { claimName: "missing-too" } }),
  ofClass("the most memory", { memoryBytes: 2 ** 46, sharedMemoryBytes: 2 ** 46 }),
  refusedClass("no runtimes", { runtimes: [] }, "spec.runtimes"),
  refusedClass("more GPUs for each engine", { gpuCount: 2 }, "gpuCount is immutable"),
  refusedClass("another GPU type", { gpuPool: "H100" }, "gpuPool is immutable"),
  refusedClass("memory beyond 2^53", { gpuMemoryBytes: 2 ** 60 }, "should be less than or equal to 4398046511104"),
  refusedClass("a variable of Seatrial", { env: [{ name: "HF_HUB_OFFLINE", value: "0" }] }, "env must not contain a variable that Seatrial sets"),
  refusedClass("a label of Seatrial", { labels: { "seatrial.dev/role": "x" } }, "labels must not contain seatrial.dev/*"),
  {
    name: "host class: status by hand",
    make: ({ patch }) => patch(hostClass, { status: { conditions: [], freeGpus: 9_007_199_254_740_991, models: 0 } }, "--subresource=status"),
    shows: ({ kubectl }) => [
      kubectl("get", hostClass, "-o", "jsonpath={.status.models} {.status.conditions[?(@.type=='Accepted')].status}"),
      (text) => text === "1 True"
    ]
  },
  {
    name: "host class: it is deleted and created again",
    make: ({ apply, kubectl }) =>
      Effect.gen(function* () {
        const printed = yield* kubectl("delete", hostClass)
        yield* Effect.sleep("3 seconds")
        yield* apply(original)
        return printed
      })
  },
  ...refusals(namespace).map(refusal),
  {
    name: "namespace: only restricted pods, and a label",
    make: ({ kubectl }) => kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted", "team=x", "--overwrite"),
    undo: ({ kubectl }) => kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce-", "team-")
  },
  {
    name: "namespace: no object may be created",
    make: ({ apply }) =>
      apply({
        apiVersion: "v1",
        kind: "ResourceQuota",
        metadata: { name: "nothing", namespace },
        spec: { hard: { pods: "0", secrets: "0", "count/jobs.batch": "0", "count/events.events.k8s.io": "0" } }
      }),
    undo: ({ kubectl }) => kubectl("delete", "resourcequota", "nothing")
  },
  onNodes("all are cordoned", ["cordon", "sim-0", "sim-1"], ["uncordon", "sim-0", "sim-1"]),
  onNodes("a taint that no engine tolerates", ["taint", "nodes", "--all", "mine=yes:NoSchedule"], ["taint", "nodes", "--all", "mine-"]),
  onNodes(
    "the label of their GPUs is another one",
    ["label", "nodes", "--all", "nvidia.com/gpu.product=H100", "--overwrite"],
    ["label", "nodes", "--all", `nvidia.com/gpu.product=${simulatedProduct}`, "--overwrite"]
  ),
  onNodes(
    "labels of GPUs that are shared",
    ["label", "nodes", "--all", "nvidia.com/gpu.sharing-strategy=mps"],
    ["label", "nodes", "--all", "nvidia.com/gpu.sharing-strategy-"]
  ),
  removed("the RoleBinding of the operator is deleted for a moment", "rolebinding", "seatrial-operator"),
  removed("the ClusterRoleBinding of the operator is deleted for a moment", "clusterrolebinding", "seatrial-operator"),
  {
    name: "lease: it is deleted",
    make: ({ kubectl }) => kubectl("delete", "lease", "seatrial-operator")
  },
  {
    name: "lease: another holder",
    make: ({ patch }) => patch("lease/seatrial-operator", { spec: { holderIdentity: "someone" } })
  }
]
