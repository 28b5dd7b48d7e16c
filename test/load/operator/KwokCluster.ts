import { spawn } from "node:child_process"
import { createWriteStream } from "node:fs"
import { copyFile, mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { startControlPlane } from "../../cluster/ControlPlane.ts"
import { scratchFolder } from "../../cluster/scratchFolder.ts"
import { localVolume, simulatedHostClass, simulatedProduct } from "../../cluster/simulatedHostClass.ts"
import { openCluster } from "../../e2e/cluster.ts"

const root = join(import.meta.dirname, "../../..")
const namespace = "seatrial"
/** The time of the scheduler and of the controllers grows with the number of nodes, so that a few large nodes leave the processors to the operator. */
const gpusPerNode = 1_024

const stage = (name: string, kind: "Pod" | "Node", selector: ReadonlyArray<object>, next: object) => ({
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name },
  spec: { resourceRef: { apiGroup: "v1", kind }, selector: { matchExpressions: selector }, next }
})
const present = { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" }
const isReady = '.status.conditions.[] | select( .type == "Ready" ) | .status'
const condition = (type: string) => `- {type: ${type}, status: "True", lastTransitionTime: {{ Now | Quote }}}`
/** The last digit of the name is the number of the engine. Engines of a model need different addresses. */
const ready = (addresses: string) => {
  const address = `${addresses}{{ trunc -1 .metadata.name }}`
  return `conditions:\n${["Initialized", "Ready", "ContainersReady"].map(condition).join("\n")}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, restartCount: 0, started: true, state: {running: {startedAt: {{ Now | Quote }}}}}
{{ end }}
phase: Running
podIP: ${address}
podIPs: [{ip: ${address}}]
startTime: {{ Now | Quote }}
`
}
const completed = `containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: false, restartCount: 0, state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }}}}}
{{ end }}
phase: Succeeded
startTime: {{ Now | Quote }}
`
const ofJob = { key: ".metadata.ownerReferences.[].kind", operator: "In", values: ["Job"] }
const notOfJob = { ...ofJob, operator: "NotIn" }
const pending = { key: ".status.phase", operator: "In", values: ["Pending"] }

/** Nodes, downloads and engines are ready immediately, and deleted objects disappear immediately. */
const stagesOf = (engineAddresses: string) => [
  stage("node-ready", "Node", [{ key: isReady, operator: "NotIn", values: ["True"] }], {
    statusTemplate: `conditions:\n- {type: Ready, status: "True", reason: KubeletReady, message: ready, lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}\nphase: Running\n`
  }),
  stage("engine-ready", "Pod", [present, pending, notOfJob], { statusTemplate: ready(engineAddresses) }),
  stage("download-done", "Pod", [present, pending, ofJob], { statusTemplate: completed }),
  stage("pod-delete", "Pod", [{ ...present, operator: "Exists" }], { finalizers: { empty: true }, delete: true })
]

const claim = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "seatrial-weights", namespace },
  spec: { accessModes: ["ReadWriteMany"], storageClassName: "", volumeName: "seatrial-weights", resources: { requests: { storage: "100Gi" } } }
}

const node = (number: number) => {
  const resources = { cpu: "16000", memory: "64Ti", pods: "10000", "nvidia.com/gpu": String(gpusPerNode) }
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: `kwok-${number}`, labels: { "nvidia.com/gpu.product": simulatedProduct, "kubernetes.io/hostname": `kwok-${number}` } },
    status: { allocatable: resources, capacity: resources }
  }
}

// The default rate limits of these programs are for small clusters.
const fast = ["--kube-api-qps=5000", "--kube-api-burst=10000"]

/**
 * A real control plane with nodes and pods of kwok, and `gpus` GPUs in total. `controllers`: those that run, as the flag of kube-controller-manager has
 * them. `operator`: the environment of a pod with the operator's ServiceAccount.
 */
export const startKwokCluster = Effect.fnUntraced(function* (gpus: number, controllers = "*") {
  const directory = yield* scratchFolder("kwok")
  const plane = yield* startControlPlane(join(directory, "plane"), {
    "kube-controller-manager": [...fast, `--controllers=${controllers}`, "--concurrent-job-syncs=20", "--node-monitor-grace-period=10m"],
    "kube-scheduler": fast
  })
  const { command, kubeconfig } = plane
  // The addresses of the fake engine: one for each engine of a model. kwok assigns them to the pods.
  const engineAddresses = `${plane.network}.77.1`
  const apply = (...items: ReadonlyArray<object>) =>
    command("kubectl", ["apply", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items }) })
  yield* command("kubectl", ["apply", "-f", join(root, "k8s/rbac.yaml"), "-f", join(root, "k8s/crds")])
  yield* command("kubectl", ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])
  yield* apply(localVolume("seatrial-weights", namespace), claim, simulatedHostClass("sim-small", { bootDeadlineSeconds: 600 }))
  yield* apply(...Array.from({ length: Math.ceil(gpus / gpusPerNode) }, (_, number) => node(number)))
  const config = join(directory, "stages.yaml")
  yield* Effect.promise(() =>
    writeFile(
      config,
      stagesOf(engineAddresses)
        .map((object) => JSON.stringify(object))
        .join("\n---\n")
    )
  )
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const log = createWriteStream(join(directory, "kwok.log"))
      const args = [
        `--kubeconfig=${kubeconfig}`,
        `--config=${config}`,
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=400",
        "--server-address=127.0.0.1:0"
      ]
      const child = spawn(join(root, "tools/bin/kwok"), args, { stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env.PATH, HOME: directory } })
      child.stdout.pipe(log, { end: false })
      child.stderr.pipe(log, { end: false })
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  yield* command("kubectl", ["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=120s"])
  const token = yield* command("kubectl", ["create", "token", "seatrial-operator", `--namespace=${namespace}`, "--duration=6h"])
  const serviceAccount = join(directory, "serviceaccount")
  yield* Effect.promise(async () => {
    await mkdir(serviceAccount, { mode: 0o700 })
    await writeFile(join(serviceAccount, "token"), token)
    await writeFile(join(serviceAccount, "namespace"), namespace)
    await copyFile(join(plane.directory, "certs/apiserver.crt"), join(serviceAccount, "ca.crt"))
  })
  const { hostname, port } = new URL(plane.address)
  const operator = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, SERVICE_ACCOUNT: serviceAccount }
  return { ...plane, directory, namespace, engineAddresses, operator, kube: yield* openCluster(kubeconfig) }
})
