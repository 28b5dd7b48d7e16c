import { Pod, type Selection } from "@seatrial/kube"
import { Effect } from "effect"
import { namespace } from "./clusterObjects.ts"
import type { NodeClusterShape } from "./NodeCluster.ts"
import { dnsAddress } from "./places.ts"
import { probeConnections } from "./probeConnections.ts"
import type { ServedReleaseShape } from "./ServedRelease.ts"

/** A port on which every stand-in listens, and that no policy allows. */
const standInPort = 9_999

const programLabels = (component: string) => ({
  "app.kubernetes.io/name": "seatrial",
  "app.kubernetes.io/instance": "seatrial",
  "app.kubernetes.io/component": component
})

/** Pods that represent programs which run for a moment only: they have their labels, so that the same policies select them. */
const standIns = {
  test: programLabels("test"),
  migrate: programLabels("migrate"),
  "weights-check": programLabels("weights-check"),
  "clean-weights": programLabels("clean-weights"),
  download: { "app.kubernetes.io/managed-by": "seatrial", "seatrial.dev/role": "fetch" },
  reference: { "app.kubernetes.io/managed-by": "seatrial", "seatrial.dev/role": "reference" }
} as const

/** A pod of the cluster that is not part of the release. */
const stranger = { namespace: "default", pod: "stranger" }

const standInPod = (image: string, name: string, own: string, labels: Readonly<Record<string, string>>) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: own, labels },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    containers: [
      {
        name: "main",
        image,
        command: ["node", "--eval", `process.once("SIGTERM", () => process.exit()); require("node:net").createServer().listen(${standInPort})`],
        readinessProbe: { tcpSocket: { port: standInPort }, periodSeconds: 1 },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } }
      }
    ]
  }
})

const podNameOf = (name: string) => `probe-${name}`

/** Starts the stand-ins and a pod outside of the release, and removes them with the scope. */
const startStandIns = ({ apply, image, kubectl }: ServedReleaseShape) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const pods = [
        standInPod(image, stranger.pod, stranger.namespace, {}),
        ...Object.entries(standIns).map(([name, labels]) => standInPod(image, podNameOf(name), namespace, labels))
      ]
      yield* apply(...pods)
      yield* kubectl([`--namespace=${stranger.namespace}`, "wait", "--for=condition=Ready", `pod/${stranger.pod}`, "--timeout=120s"])
      yield* kubectl(["wait", "--for=condition=Ready", ...Object.keys(standIns).map((name) => `pod/${podNameOf(name)}`), "--timeout=120s"])
    }),
    () =>
      Effect.ignore(
        Effect.andThen(
          kubectl([`--namespace=${stranger.namespace}`, "delete", "pod", stranger.pod, "--wait=false"]),
          kubectl(["delete", "pod", ...Object.keys(standIns).map(podNameOf), "--wait=false"])
        )
      )
  )

/** The programs that run all the time, by the labels of their pods. */
const programs = {
  server: "app.kubernetes.io/component=server",
  gateway: "app.kubernetes.io/component=gateway",
  operator: "app.kubernetes.io/component=operator",
  postgres: "app.kubernetes.io/component=postgres",
  engine: "seatrial.dev/role=engine"
} as const

/** The first pod of a selection, with its address. */
const findPod = ({ kube }: NodeClusterShape, name: string, selection: Selection, container = name) =>
  Effect.map(kube.list(Pod, selection), ([pod]) => {
    const address = pod?.status?.podIP
    if (pod === undefined || address === undefined) throw new Error(`${name} has no pod with an address`)
    return { name, address, source: { namespace: pod.metadata.namespace ?? "", pod: pod.metadata.name, container } }
  })

/** The ports of the programs and of the cluster, and the same ports of a pod that is not part of the release. */
const targetsOf = (
  { hub, nodes }: NodeClusterShape,
  addresses: Readonly<Record<string, string>>,
  jobs: ReadonlyArray<string>
): Readonly<Record<string, string>> => ({
  server: `${addresses.server}:8080`,
  "server metrics": `${addresses.server}:9090`,
  gateway: `${addresses.gateway}:8081`,
  "gateway metrics": `${addresses.gateway}:9090`,
  "operator metrics": `${addresses.operator}:9090`,
  engine: `${addresses.engine}:8000`,
  postgres: `${addresses.postgres}:5432`,
  "API server": "10.96.0.1:443",
  kubelet: `${nodes[0]?.address ?? ""}:10250`,
  hub: hub.replace("http://", ""),
  DNS: `${dnsAddress}:53`,
  ...Object.fromEntries([443, 5432, 8000, 8080, 8081].map((port) => [`outside ${port}`, `${addresses.outside}:${port}`])),
  ...Object.fromEntries(jobs.map((name) => [`${name} job`, `${addresses[name]}:${standInPort}`]))
})

/** Which targets each program of the release, and a pod outside of it, reaches. Programs are probed from their own pods, and jobs from stand-ins. */
export const probeEverything = Effect.fnUntraced(function* (cluster: ServedReleaseShape) {
  yield* startStandIns(cluster)
  yield* cluster.syncPolicies
  const sources = yield* Effect.all([
    ...Object.entries(programs).map(([name, labelSelector]) => findPod(cluster, name, { namespace, labelSelector, fieldSelector: "status.phase=Running" })),
    ...Object.keys(standIns).map((name) => findPod(cluster, name, { namespace, fieldSelector: `metadata.name=${podNameOf(name)}` }, "main")),
    findPod(cluster, "outside", { namespace: stranger.namespace, fieldSelector: `metadata.name=${stranger.pod}` }, "main")
  ])
  const addresses = Object.fromEntries(sources.map(({ address, name }) => [name, address]))
  const targets = targetsOf(cluster, addresses, Object.keys(standIns))
  const reached = yield* Effect.forEach(sources, ({ address, name, source }) => {
    // What a pod asks of itself does not leave it.
    const others = Object.fromEntries(Object.entries(targets).filter(([, target]) => !target.startsWith(`${address}:`)))
    return Effect.map(probeConnections(cluster, source, others), (names) => [name, [...names].sort()] as const)
  })
  return Object.fromEntries(reached)
}, Effect.scoped)
