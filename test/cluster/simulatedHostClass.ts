/** The card class of the simulated nodes' GPUs. */
export const simulatedProduct = "Seatrial-Sim-1GiB"

/** A HostClass of the reference engine on one simulated GPU, for instance with another `image` or `gpuPool`. */
export const simulatedHostClass = (
  name = "sim-small",
  {
    image = "ghcr.io/seatrial/reference-engine:0.1.0",
    gpuPool = simulatedProduct,
    ...more
  }: Readonly<Record<string, unknown>> & { readonly image?: string; readonly gpuPool?: string } = {}
) => ({
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "HostClass",
  metadata: { name },
  spec: {
    runtimes: [{ runtime: "reference", image }],
    gpuPool,
    gpuCount: 1,
    gpuMemoryBytes: 2 ** 30,
    nodeSelector: { "nvidia.com/gpu.product": gpuPool },
    pricePerGpuHour: "100000",
    benchmarkSeconds: 1,
    bootDeadlineSeconds: 180,
    simulated: true,
    ...more
  }
})

/** A class of storage whose claims are bound for a pod only, as many clusters' default is. */
export const lateStorage = {
  apiVersion: "storage.k8s.io/v1",
  kind: "StorageClass",
  metadata: { name: "late", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: "kubernetes.io/no-provisioner",
  volumeBindingMode: "WaitForFirstConsumer"
}

/** A volume that every pod of the node agent reaches, for one claim: on a cluster of one machine any volume is ReadWriteMany. */
export const localVolume = (claim: string, namespace: string, storageClassName = "") => ({
  apiVersion: "v1",
  kind: "PersistentVolume",
  metadata: { name: claim },
  spec: {
    capacity: { storage: "100Gi" },
    accessModes: ["ReadWriteMany", "ReadWriteOnce"],
    persistentVolumeReclaimPolicy: "Retain",
    storageClassName,
    claimRef: { namespace, name: claim },
    hostPath: { path: "/var/lib/seatrial" }
  }
})
