import { dirname, join } from "node:path"
import { KubeClient } from "@seatrial/kube"
import { NodeAgent, type NodeAgentOptions } from "@seatrial/local"
import { Effect, Layer } from "effect"
import { openCluster } from "../e2e/cluster.ts"
import { type ProgramFlags, startControlPlane } from "./ControlPlane.ts"
import { scratchFolder } from "./scratchFolder.ts"
import { localVolume, simulatedHostClass, simulatedProduct } from "./simulatedHostClass.ts"

const root = join(import.meta.dirname, "../..")
const namespace = "seatrial"

/** What the product's images hold, as this checkout has it. */
const image = { path: [join(root, "node_modules/.bin"), dirname(process.execPath)] }
export const checkoutImages = { "ghcr.io/seatrial/seatrial": image, "ghcr.io/seatrial/reference-engine": image }

/** A simulated node that is found silent soon after it stops. */
export const simulatedNode = (name: string, gpus: number, product = simulatedProduct): NodeAgentOptions["nodes"][number] => ({
  name,
  gpus,
  product,
  memoryMiB: 1_024,
  renewSeconds: 3
})

const weightsClaim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "seatrial-weights", namespace },
  spec: { accessModes: ["ReadWriteMany"], storageClassName: "", volumeName: "seatrial-weights", resources: { requests: { storage: "100Gi" } } }
}

const list = (...items: ReadonlyArray<unknown>) => JSON.stringify({ apiVersion: "v1", kind: "List", items })

/** `startRealCluster` with more flags for the control plane's programs, given its folder. */
export const startRealClusterWith = Effect.fnUntraced(function* (flags: (directory: string) => ProgramFlags) {
  const directory = yield* scratchFolder("cluster")
  const plane = yield* startControlPlane(join(directory, "plane"), flags(directory))
  const { command, kubeconfig, kubeconfigFor } = plane
  yield* command("kubectl", ["apply", "--validate=strict", "-f", join(root, "k8s/rbac.yaml"), "-f", join(root, "k8s/crds")])
  yield* command("kubectl", ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])
  const objects = list(localVolume("seatrial-weights", namespace), weightsClaim, simulatedHostClass("sim-small", { bootDeadlineSeconds: 60 }))
  yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: objects })
  const token = yield* command("kubectl", ["create", "token", "seatrial-operator", `--namespace=${namespace}`, "--duration=2h"])
  const operator = yield* kubeconfigFor("operator", token.trim())
  const kube = yield* openCluster(kubeconfig)
  yield* Layer.build(
    NodeAgent.layer({
      directory: join(directory, "nodes"),
      nodes: [simulatedNode("sim-0", 4), simulatedNode("sim-1", 4)],
      images: checkoutImages,
      network: plane.network,
      tls: plane.tls
    }).pipe(Layer.provide(Layer.succeed(KubeClient, kube)))
  )
  return { ...plane, namespace, operator, kube }
})

/**
 * A real control plane with the product's definitions, permissions and one host class, and two nodes of simulated GPUs whose pods run here as processes. `operator` is
 * a kubeconfig with the operator's own ServiceAccount, and no more.
 */
export const startRealCluster = startRealClusterWith(() => ({}))
export type RealCluster = Effect.Success<typeof startRealCluster>
