import { type KubeClient, type KubeError, Lease, Node } from "@seatrial/kube"
import { Clock, Effect, Option, type Scope } from "effect"
import { micros, now } from "./kubeTime.ts"

/** A node that this machine simulates. */
export interface SimulatedNode {
  readonly name: string
  readonly gpus: number
  /** The label `nvidia.com/gpu.product`, for instance `NVIDIA-H100-80GB-HBM3`. */
  readonly product: string
  /** Memory of one GPU in MiB. */
  readonly memoryMiB: number
  /** CPU cores (default 32). */
  readonly cpus?: number
  /** Main memory (default `256Gi`). */
  readonly memory?: string
  readonly labels?: Readonly<Record<string, string>>
  /** Seconds between two renewals of its lease (default 10). */
  readonly renewSeconds?: number
}

const leaseNamespace = "kube-node-lease"
const leaseSeconds = 40
const renewSeconds = 10
const rounds = 6

const operatingSystem = process.platform === "darwin" ? "darwin" : "linux"
const architecture = process.arch === "x64" ? "amd64" : process.arch

const labelsOf = (node: SimulatedNode) => ({
  "kubernetes.io/hostname": node.name,
  "kubernetes.io/os": operatingSystem,
  "kubernetes.io/arch": architecture,
  "seatrial.dev/simulated": "true",
  "nvidia.com/gpu.present": String(node.gpus > 0),
  "nvidia.com/gpu.count": String(node.gpus),
  "nvidia.com/gpu.product": node.product,
  "nvidia.com/gpu.memory": String(node.memoryMiB),
  ...node.labels
})

const resourcesOf = (node: SimulatedNode) => ({
  cpu: String(node.cpus ?? 32),
  memory: node.memory ?? "256Gi",
  "ephemeral-storage": "100Gi",
  pods: "110",
  "nvidia.com/gpu": String(node.gpus)
})

/** The status of a ready node. `since`: when it became ready. */
const statusOf = (node: SimulatedNode, address: string, logPort: number, at: string, since: string) => {
  const resources = resourcesOf(node)
  return {
    capacity: resources,
    allocatable: resources,
    addresses: [
      { type: "InternalIP", address },
      { type: "Hostname", address: node.name }
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: logPort } },
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "KubeletReady",
        message: "the node agent is posting ready status",
        lastHeartbeatTime: at,
        lastTransitionTime: since
      }
    ],
    nodeInfo: {
      machineID: node.name,
      systemUUID: node.name,
      bootID: node.name,
      kernelVersion: "",
      osImage: "simulated",
      containerRuntimeVersion: "process://1",
      kubeletVersion: "v1.34.0-seatrial",
      kubeProxyVersion: "",
      operatingSystem,
      architecture
    }
  }
}

/** Renews the lease of a node. */
const renewLease = Effect.fnUntraced(function* (kube: KubeClient["Service"], { name }: SimulatedNode) {
  const millis = yield* Clock.currentTimeMillis
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, namespace: leaseNamespace },
    spec: { holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime: micros(millis) }
  }
  yield* kube.apply(Lease, lease)
})

/**
 * Creates or corrects the Node and keeps it alive until the scope closes: renews its lease every ten seconds and its
 * Ready condition every minute.
 */
export const registerNode = Effect.fn("registerNode")(function* (
  kube: KubeClient["Service"],
  node: SimulatedNode,
  address: string,
  logPort: number
): Effect.fn.Return<void, KubeError, Scope.Scope> {
  const apply = { apiVersion: "v1", kind: "Node", metadata: { name: node.name, labels: labelsOf(node), annotations: { "seatrial.dev/simulated": "true" } } }
  yield* kube.apply(Node, apply)
  const since = yield* now

  const ready = Effect.gen(function* () {
    const stored = yield* kube.get(Node, node.name)
    const before = Option.getOrUndefined(stored)?.status?.conditions?.find(({ type }) => type === "Ready")
    const at = yield* now
    const status = statusOf(node, address, logPort, at, before?.status === "True" ? (before.lastTransitionTime ?? since) : at)
    const object = { apiVersion: "v1", kind: "Node", metadata: { name: node.name }, status }
    yield* kube.applyStatus(Node, object)
  })
  const renew = renewLease(kube, node)

  yield* ready
  yield* Effect.gen(function* () {
    for (let round = 0; ; round++) {
      yield* (round % rounds === rounds - 1 ? Effect.andThen(ready, renew) : renew).pipe(
        Effect.catch((error) => Effect.logWarning(`The heartbeat of node ${node.name} failed: ${error.message}`))
      )
      yield* Effect.sleep(`${node.renewSeconds ?? renewSeconds} seconds`)
    }
  }).pipe(Effect.forkScoped)
})
