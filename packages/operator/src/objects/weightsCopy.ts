import type { KubeObject } from "@seatrial/kube"
import type { RunRevision } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { checkContainer, copyContainer, weightsInUseAnnotation } from "../resources/objectNames.ts"
import type { WeightsCache } from "../resources/PodClass.ts"
import { weightsArguments, weightsMounts } from "../resources/weightFiles.ts"

/**
 * The volume for a node's copies, as the host class configures it: a claim of a local volume that all nodes of the
 * class share by name, or a volume of the pod.
 */
const copiesVolume = ({ claimName, sizeBytes, storageClassName }: WeightsCache) => {
  if (claimName !== null) return { persistentVolumeClaim: { claimName } }
  if (storageClassName === null) return { emptyDir: sizeBytes === null ? {} : { sizeLimit: String(sizeBytes) } }
  const storage = String(sizeBytes ?? 0)
  return { ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], storageClassName, resources: { requests: { storage } } } } } }
}

/** The source of the engine's weights: volumes, and the init container. */
export const weightsFrom = (
  cache: WeightsCache | null,
  revision: RunRevision,
  { fetchImage }: Pick<OperatorSettings, "fetchImage">,
  weightsClaim: string,
  security: object
) => {
  const first = {
    image: fetchImage,
    // A fixed user that does not depend on the engine's user: a copy made by one pod may be repaired or deleted by
    // another.
    securityContext: { ...security, runAsNonRoot: true, runAsUser: 2000, runAsGroup: 2000 },
    terminationMessagePolicy: "FallbackToLogsOnError"
  }
  // The files never pass through V8's heap.
  const node = [
    { name: "HOME", value: "/tmp" },
    { name: "NODE_OPTIONS", value: "--max-old-space-size=128 --max-semi-space-size=2" }
  ]
  if (cache === null) {
    const check = {
      ...first,
      name: checkContainer,
      command: ["seatrial", "check-weights"],
      args: weightsArguments(revision, "/models"),
      env: node,
      resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "1Gi" } },
      volumeMounts: weightsMounts("/models", revision)
    }
    return { volumes: [{ name: "weights", persistentVolumeClaim: { claimName: weightsClaim, readOnly: true } }], containers: { initContainers: [check] } }
  }
  const container = {
    ...first,
    name: copyContainer,
    command: ["seatrial", "copy-weights"],
    args: [...weightsArguments(revision, null), "--from=/weights", "--to=/models", `--verify=${cache.verify}`],
    env: [{ name: "SEATRIAL_WEIGHTS_IN_USE", valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${weightsInUseAnnotation}']` } } }, ...node],
    resources: { requests: { cpu: "500m", memory: "256Mi" }, limits: { memory: "1Gi" } },
    // The whole store, read-only: a node creates no container whose `subPath` is missing from a read-only volume, and
    // the copy on the node must suffice if the store has lost the commit. The operator cannot know which copies a node
    // has.
    volumeMounts: [
      { name: "store", mountPath: "/weights", readOnly: true },
      { name: "weights", mountPath: "/models" }
    ]
  }
  return {
    volumes: [
      { name: "store", persistentVolumeClaim: { claimName: weightsClaim, readOnly: true } },
      { name: "weights", ...copiesVolume(cache) }
    ],
    containers: { initContainers: [container] }
  }
}

/** The pod, with an annotation that lists the other copies that must stay on its node. */
export const annotateCopiesInUse = (pod: KubeObject, inUse: string | null): KubeObject =>
  inUse === null ? pod : { ...pod, metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, [weightsInUseAnnotation]: inUse } } }
