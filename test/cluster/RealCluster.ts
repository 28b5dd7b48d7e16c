import { mkdir, symlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import { KubeClient } from "@seatrial/kube"
import { NodeAgent, type NodeAgentOptions } from "@seatrial/local"
import { Effect, Exit, Layer, Schema, Scope } from "effect"
import { openCluster } from "../e2e/cluster.ts"
import { prepareAudit } from "./auditLog.ts"
import { startControlPlane } from "./ControlPlane.ts"
import { scratchFolder } from "./scratchFolder.ts"
import { localVolume, simulatedHostClass, simulatedProduct } from "./simulatedHostClass.ts"
import { takeNetwork } from "./takeNetwork.ts"

const root = join(import.meta.dirname, "../..")
const namespace = "seatrial"

/** The engine's image as the nodes report it. */
export const engineDigest = `sha256:${"5".repeat(64)}`

/** What the product's images hold, as this checkout has it. Programs reuse what an earlier one compiled. */
const image = {
  path: [join(root, "node_modules/.bin"), dirname(process.execPath)],
  environment: { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "" }
}
const checkoutImages = { "ghcr.io/seatrial/seatrial": image, "ghcr.io/seatrial/reference-engine": { ...image, digest: engineDigest } }

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

const Token = Schema.fromJsonString(Schema.Struct({ jti: Schema.String }))
/** The user name of a token in the API server's audit log. */
const credentialOf = (token: string) => {
  const claims = Buffer.from(token.split(".")[1] ?? "", "base64url").toString()
  return `JTI=${Schema.decodeUnknownSync(Token)(claims).jti}`
}

/**
 * A real control plane with the product's definitions, permissions and one host class, and two nodes of simulated GPUs whose pods run here as processes. It writes down what
 * the operators ask of it.
 */
export const startRealCluster = Effect.gen(function* () {
  const directory = yield* scratchFolder("cluster")
  const audit = yield* prepareAudit(directory)
  const plane = yield* startControlPlane(join(directory, "plane"), { "kube-apiserver": audit.flags })
  const { command, kubeconfig, kubeconfigFor } = plane
  yield* command("kubectl", ["apply", "--validate=strict", "-f", join(root, "k8s/rbac.yaml"), "-f", join(root, "k8s/crds")])
  yield* command("kubectl", ["wait", "--for=condition=Established", "crd", "--all", "--timeout=300s"])
  const objects = list(localVolume("seatrial-weights", namespace), weightsClaim, simulatedHostClass("sim-small", { bootDeadlineSeconds: 180 }))
  yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: objects })
  const kube = yield* openCluster(kubeconfig)
  const nodes = join(directory, "nodes")
  const startNodes = (options: Omit<NodeAgentOptions, "images" | "tls">) =>
    Layer.build(NodeAgent.layer({ ...options, images: checkoutImages, tls: plane.tls }).pipe(Layer.provide(Layer.succeed(KubeClient, kube))))
  yield* startNodes({ directory: nodes, nodes: [simulatedNode("sim-0", 4), simulatedNode("sim-1", 4)], network: plane.network })
  return {
    ...plane,
    namespace,
    kube,
    /** Of the API server: what the operators asked of it. */
    audit: audit.path,
    /** A kubeconfig with only the operator's ServiceAccount, and the name of its token in the audit log. */
    operatorAccount: Effect.fnUntraced(function* (name = "operator") {
      const token = (yield* command("kubectl", ["create", "token", "seatrial-operator", `--namespace=${namespace}`, "--duration=2h"])).trim()
      return { kubeconfig: yield* kubeconfigFor(name, token), credential: credentialOf(token) }
    }),
    /** Another node with one GPU; the effect that it gives stops it as a machine that fails does, without a word. */
    startNode: Effect.fnUntraced(function* (name: string, product: string = simulatedProduct) {
      const own = join(directory, name)
      // Weights are on a volume that all nodes reach.
      yield* Effect.promise(async () => {
        await mkdir(own, { recursive: true })
        await mkdir(join(nodes, "volumes"), { recursive: true })
        await symlink(join(nodes, "volumes"), join(own, "volumes"))
      })
      const scope = yield* Scope.fork(yield* Effect.scope)
      const network = yield* takeNetwork
      yield* startNodes({ directory: own, nodes: [simulatedNode(name, 1, product)], network }).pipe(Scope.provide(scope))
      return Scope.close(scope, Exit.void)
    })
  }
})
export type RealCluster = Effect.Success<typeof startRealCluster>
