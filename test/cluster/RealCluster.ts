import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { KubeClient } from "@seatrial/kube"
import { NodeAgent } from "@seatrial/local"
import { Effect, Layer } from "effect"
import { openCluster } from "../e2e/cluster.ts"
import { startControlPlane } from "./ControlPlane.ts"

const root = join(import.meta.dirname, "../..")
const namespace = "seatrial"

/** What the product's images hold, as this checkout has it. */
const image = { path: [join(root, "node_modules/.bin"), dirname(process.execPath)] }

/** A volume that every pod of the node agent reaches: on a cluster of one machine any volume is ReadWriteMany. */
const weights = [
  {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "seatrial-weights" },
    spec: {
      capacity: { storage: "100Gi" },
      accessModes: ["ReadWriteMany"],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: "",
      claimRef: { namespace, name: "seatrial-weights" },
      hostPath: { path: "/var/lib/seatrial" }
    }
  },
  {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: "seatrial-weights", namespace },
    spec: { accessModes: ["ReadWriteMany"], storageClassName: "", volumeName: "seatrial-weights", resources: { requests: { storage: "100Gi" } } }
  }
]

const hostClass = {
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "HostClass",
  metadata: { name: "sim-small" },
  spec: {
    runtimes: [{ runtime: "reference", image: "ghcr.io/seatrial/reference-engine:0.1.0" }],
    gpuPool: "Seatrial-Sim-1GiB",
    gpuCount: 1,
    gpuMemoryBytes: 2 ** 30,
    nodeSelector: { "nvidia.com/gpu.product": "Seatrial-Sim-1GiB" },
    pricePerGpuHour: "100000",
    benchmarkSeconds: 1,
    bootDeadlineSeconds: 60,
    simulated: true
  }
}

const json = (...objects: ReadonlyArray<unknown>) => JSON.stringify({ apiVersion: "v1", kind: "List", items: objects })

/**
 * A real control plane with the product's definitions, permissions and one host class, and two nodes of simulated GPUs whose pods run here as processes. `operator` is
 * a kubeconfig with the operator's own ServiceAccount, and no more.
 */
export const startRealCluster = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "seatrial-cluster-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  )
  const plane = yield* startControlPlane(join(directory, "plane"))
  const { command, kubeconfig, kubeconfigFor } = plane
  yield* command("kubectl", ["apply", "--validate=strict", "-f", join(root, "k8s/rbac.yaml"), "-f", join(root, "k8s/crds")])
  yield* command("kubectl", ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])
  yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: json(...weights, hostClass) })
  const token = yield* command("kubectl", ["create", "token", "seatrial-operator", `--namespace=${namespace}`, "--duration=2h"])
  const operator = yield* kubeconfigFor("operator", token.trim())
  const kube = yield* openCluster(kubeconfig)
  const node = (name: string) => ({ name, gpus: 4, product: "Seatrial-Sim-1GiB", memoryMiB: 1_024 })
  yield* Layer.build(
    NodeAgent.layer({
      directory: join(directory, "nodes"),
      nodes: [node("sim-0"), node("sim-1")],
      images: { "ghcr.io/seatrial/seatrial": image, "ghcr.io/seatrial/reference-engine": image },
      network: "127.251",
      tls: plane.tls
    }).pipe(Layer.provide(Layer.succeed(KubeClient, kube)))
  )
  return { ...plane, namespace, operator, kube }
})
