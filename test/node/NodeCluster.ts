import { chmodSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import type { KubeClient, KubeError } from "@seatrial/kube"
import { SampleHub } from "@seatrial/local"
import { Context, Effect, Layer } from "effect"
import { openCluster } from "../e2e/cluster.ts"
import { dnsObjects, namespace, storageObjects, volumeFolder, volumeNames } from "./clusterObjects.ts"
import { enforcePolicies } from "./enforcePolicies.ts"
import { forwardHub } from "./forwardHub.ts"
import { type NodePlane, startNodePlane } from "./NodePlane.ts"
import { socketOf } from "./nodeConfiguration.ts"
import { buildNodeImages } from "./nodeImages.ts"
import { nodes, root } from "./places.ts"
import { type RealNode, startRealNode } from "./RealNode.ts"
import type { ToolFailed, ToolOptions } from "./runTool.ts"
import { takeMachine } from "./takeMachine.ts"

export const chart = join(root, "charts/seatrial")

export interface NodeClusterShape {
  readonly kube: KubeClient["Service"]
  readonly nodes: ReadonlyArray<RealNode>
  /** The model hub, as pods reach it. */
  readonly hub: string
  /** Applies the network policies to the pods of this moment. */
  readonly syncPolicies: Effect.Effect<void, KubeError | ToolFailed>
  readonly kubectl: (args: ReadonlyArray<string>, options?: ToolOptions) => Effect.Effect<string, ToolFailed>
  readonly helm: (...args: ReadonlyArray<string>) => Effect.Effect<string, ToolFailed>
  /** Applies objects that name their namespace. */
  readonly apply: (...objects: ReadonlyArray<unknown>) => Effect.Effect<string, ToolFailed>
  /** The address of a Service in the cluster. */
  readonly addressOf: (service: string) => Effect.Effect<string, ToolFailed>
  /** What the shell of the quick start needs to reach the cluster, and to give it the image. */
  readonly pageEnvironment: Readonly<Record<string, string>>
}

const list = (objects: ReadonlyArray<unknown>) => JSON.stringify({ apiVersion: "v1", kind: "List", items: objects })

const createVolumes = (): void => {
  for (const name of volumeNames) {
    mkdirSync(volumeFolder(name), { recursive: true })
    // A provisioner gives a volume to root. The kubelet gives it to the group of the pod.
    chmodSync(volumeFolder(name), 0o755)
  }
}

const startNodes = (plane: NodePlane, archives: ReadonlyArray<string>) =>
  Effect.forEach(nodes, (place) => startRealNode(place, plane, archives), { concurrency: "unbounded" })

/** Two real nodes with DNS, network policies, GPUs that a device plugin offers, a sample hub, and all that the chart needs. Nothing is installed yet. */
export class NodeCluster extends Context.Service<NodeCluster, NodeClusterShape>()("seatrial/test/NodeCluster") {
  static readonly layer = Layer.effect(
    NodeCluster,
    Effect.gen(function* () {
      yield* takeMachine
      const { archives, product } = yield* Effect.promise(buildNodeImages)
      createVolumes()
      const plane = yield* startNodePlane
      const real = yield* startNodes(plane, archives)
      const kubectl: NodeClusterShape["kubectl"] = (args, options) => plane.run("kubectl", ["--namespace", namespace, ...args], options)
      const apply = (...objects: ReadonlyArray<unknown>) => plane.run("kubectl", ["apply", "--filename=-"], { input: list(objects) })
      yield* apply(...dnsObjects, ...storageObjects)
      const kube = yield* openCluster(plane.kubeconfig)
      const syncPolicies = yield* enforcePolicies(kube)
      const { address } = Context.get(yield* Layer.build(SampleHub.layer({ port: 0 })), SampleHub)
      const hub = yield* forwardHub(address)
      yield* plane.run("kubectl", ["--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s"])
      return NodeCluster.of({
        kube,
        nodes: real,
        hub,
        syncPolicies,
        kubectl,
        apply,
        helm: (...args) => plane.run("helm", ["--namespace", namespace, ...args]),
        addressOf: (service) => Effect.map(kubectl(["get", "service", service, "--output=jsonpath={.spec.clusterIP}"]), (address) => `http://${address}`),
        pageEnvironment: { KUBECONFIG: plane.kubeconfig, ARCHIVE: product.archive, IMAGE: product.name, SOCKETS: nodes.map(socketOf).join(" ") }
      })
    })
  )
}
