import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { KubeClient, KubeError } from "@seatrial/kube"
import { SampleHub } from "@seatrial/local"
import { Context, Effect, Layer, Schema } from "effect"
import { makeCaller } from "../e2e/Caller.ts"
import { openCluster } from "../e2e/cluster.ts"
import { dnsObjects, namespace, releaseObjects, volumeFolder, volumeNames } from "./clusterObjects.ts"
import { enforcePolicies } from "./enforcePolicies.ts"
import { forwardHub } from "./forwardHub.ts"
import { type NodePlane, startNodePlane } from "./NodePlane.ts"
import { buildNodeImages, postgresImage } from "./nodeImages.ts"
import { nodes, root, state } from "./places.ts"
import { type RealNode, startRealNode } from "./RealNode.ts"
import type { ToolFailed, ToolOptions } from "./runTool.ts"
import { takeMachine } from "./takeMachine.ts"

export const chart = join(root, "charts/seatrial")

const KeyMade = Schema.fromJsonString(Schema.Struct({ secret: Schema.String }))

export interface NodeClusterShape {
  readonly kube: KubeClient["Service"]
  readonly nodes: ReadonlyArray<RealNode>
  /** The product's image: name and tag. */
  readonly image: string
  /** The model hub, as pods reach it. */
  readonly hub: string
  /** Applies the network policies to the pods of this moment. */
  readonly syncPolicies: Effect.Effect<void, KubeError | ToolFailed>
  readonly valuesFile: string
  readonly kubectl: (args: ReadonlyArray<string>, options?: ToolOptions) => Effect.Effect<string, ToolFailed>
  readonly helm: (...args: ReadonlyArray<string>) => Effect.Effect<string, ToolFailed>
  /** Applies objects that name their namespace. */
  readonly apply: (...objects: ReadonlyArray<unknown>) => Effect.Effect<string, ToolFailed>
  /** The address of a Service in the cluster. */
  readonly addressOf: (service: string) => Effect.Effect<string, ToolFailed>
  /** Runs `seatrial admin` in a server pod. */
  readonly admin: (...args: ReadonlyArray<string>) => Effect.Effect<string, ToolFailed>
  /** Callers of the API and the gateway at the addresses of their Services, with a key of a new organization that may deploy. */
  readonly callers: (organization: string) => Effect.Effect<Callers, ToolFailed>
}

export interface Callers {
  readonly api: ReturnType<typeof makeCaller>
  readonly inference: ReturnType<typeof makeCaller>
  /** A caller of the gateway at another address, such as that of one pod. */
  readonly at: (address: string) => ReturnType<typeof makeCaller>
}

const list = (objects: ReadonlyArray<unknown>) => JSON.stringify({ apiVersion: "v1", kind: "List", items: objects })

const createVolumes = (): void => {
  for (const name of volumeNames) {
    mkdirSync(volumeFolder(name), { recursive: true })
    // A provisioner gives a volume to root. The kubelet gives it to the group of the pod.
    chmodSync(volumeFolder(name), 0o755)
  }
}

const writeValues = (image: string, hub: string): string => {
  const [repository = "", tag = ""] = image.split(/:(?=[^:]*$)/u)
  const path = join(state, "values.json")
  const small = { requests: { cpu: "20m", memory: "64Mi" } }
  const values = {
    image: { repository, tag },
    hub: { endpoint: hub },
    postgres: { embedded: { enabled: true, image: postgresImage, resources: { requests: { cpu: "50m", memory: "128Mi" } } } },
    server: { resources: small },
    gateway: { resources: { ...small, limits: { memory: "2Gi" } } },
    operator: { resources: small }
  }
  writeFileSync(path, JSON.stringify(values))
  return path
}

/** `seatrial admin` and callers of a release. */
const releaseOf = (kubectl: NodeClusterShape["kubectl"]) => {
  const admin = (...args: ReadonlyArray<string>) =>
    kubectl(["exec", "deployment/seatrial-server", "--container=server", "--", "env", "SEATRIAL_ADMIN=test@example.com", "seatrial", "admin", ...args])
  const addressOf = (service: string) =>
    Effect.map(kubectl(["get", "service", service, "--output=jsonpath={.spec.clusterIP}"]), (address) => `http://${address}`)
  const callers: NodeClusterShape["callers"] = Effect.fnUntraced(function* (organization) {
    const email = `ada@${organization}.test`
    yield* admin("orgs", "create", organization)
    yield* admin("members", "add", "--org", organization, "--email", email, "--role", "owner")
    yield* admin("purchases", "record", "--org", organization, "1000000")
    const { secret } = Schema.decodeUnknownSync(KeyMade)(yield* admin("keys", "create", "--org", organization, "--email", email, "--json"))
    return {
      api: makeCaller(yield* addressOf("seatrial-server"), secret),
      inference: makeCaller(yield* addressOf("seatrial-gateway"), secret),
      at: (address: string) => makeCaller(address, secret)
    }
  })
  return { addressOf, admin, callers }
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
      yield* apply(...dnsObjects, ...releaseObjects)
      const kube = yield* openCluster(plane.kubeconfig)
      const syncPolicies = yield* enforcePolicies(kube)
      const { address } = Context.get(yield* Layer.build(SampleHub.layer({ port: 0 })), SampleHub)
      const hub = yield* forwardHub(address)
      yield* plane.run("kubectl", ["--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s"])
      return NodeCluster.of({
        kube,
        nodes: real,
        image: product,
        hub,
        syncPolicies,
        valuesFile: writeValues(product, hub),
        kubectl,
        apply,
        helm: (...args) => plane.run("helm", ["--namespace", namespace, ...args]),
        ...releaseOf(kubectl)
      })
    })
  )
}
