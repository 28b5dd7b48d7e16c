import { join } from "node:path"
import { lateStorage } from "../cluster/simulatedHostClass.ts"
import { dnsImage } from "./nodeImages.ts"
import { dnsAddress, nodes, state } from "./places.ts"

export const namespace = "seatrial"

const dnsLabels = { "k8s-app": "kube-dns" }
const dnsMeta = { name: "coredns", namespace: "kube-system" }
const dnsRole = { name: "system:coredns" }

const dnsPod = {
  serviceAccountName: "coredns",
  priorityClassName: "system-cluster-critical",
  dnsPolicy: "Default",
  containers: [
    {
      name: "coredns",
      image: dnsImage,
      imagePullPolicy: "Never",
      args: ["-conf", "/etc/coredns/Corefile"],
      readinessProbe: { httpGet: { path: "/ready", port: 8181 }, periodSeconds: 1 },
      resources: { requests: { cpu: "20m", memory: "32Mi" }, limits: { memory: "170Mi" } },
      volumeMounts: [{ name: "config", mountPath: "/etc/coredns", readOnly: true }]
    }
  ],
  volumes: [{ name: "config", configMap: { name: "coredns" } }]
}

/** The DNS of the cluster, as clusters have it. */
export const dnsObjects: ReadonlyArray<unknown> = [
  { apiVersion: "v1", kind: "ServiceAccount", metadata: dnsMeta },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: dnsRole,
    rules: [
      { apiGroups: [""], resources: ["endpoints", "services", "pods", "namespaces"], verbs: ["list", "watch"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] }
    ]
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: dnsRole,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: dnsRole.name },
    subjects: [{ kind: "ServiceAccount", ...dnsMeta }]
  },
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: dnsMeta,
    data: { Corefile: ".:53 {\n  errors\n  ready\n  kubernetes cluster.local in-addr.arpa ip6.arpa\n  cache 5\n}\n" }
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: dnsMeta,
    spec: { replicas: 1, selector: { matchLabels: dnsLabels }, template: { metadata: { labels: dnsLabels }, spec: dnsPod } }
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "kube-dns", namespace: "kube-system" },
    spec: {
      clusterIP: dnsAddress,
      selector: dnsLabels,
      ports: [
        { name: "dns", port: 53, protocol: "UDP" },
        { name: "dns-tcp", port: 53, protocol: "TCP" }
      ]
    }
  }
]

/** Folders of this machine that both nodes reach. The kubelet gives a local volume to the group of a pod, which it does not do for a hostPath. */
export const volumeNames = ["weights", "postgres", "spool"] as const
export const volumeFolder = (name: string): string => join(state, "volumes", name)

/** The claim for the spool of a gateway. */
export const spoolClaim = "gateway-spool"

const volume = (name: (typeof volumeNames)[number], claim: string) => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name },
  spec: {
    capacity: { storage: "1Ti" },
    accessModes: ["ReadWriteMany", "ReadWriteOnce"],
    persistentVolumeReclaimPolicy: "Retain",
    storageClassName: lateStorage.metadata.name,
    claimRef: { namespace, name: claim },
    local: { path: volumeFolder(name) },
    nodeAffinity: {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: nodes.map((node) => node.name) }] }]
      }
    }
  }
})

/** The namespace of the release, which admits no pod that is not `restricted`. */
export const namespaceObject = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted" } }
}

/** What a release with the embedded Postgres needs from its cluster. */
export const storageObjects: ReadonlyArray<unknown> = [
  lateStorage,
  volume("weights", "seatrial-weights"),
  volume("postgres", "data-seatrial-postgres-0"),
  volume("spool", spoolClaim)
]
