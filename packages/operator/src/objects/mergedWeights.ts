import type { RunRevision } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { mergeContainer } from "../resources/objectNames.ts"
import type { WeightsCache } from "../resources/PodClass.ts"
import { adapterPath, weightsMounts, weightsPath } from "../resources/weightFiles.ts"

/** The path of the merged model in the engine's container. */
export const mergedPath = "/merged/model"

/**
 * A volume as large as the base's weights. If a node's disk has no room for copies of models, it has none for this
 * either. The volume is deleted with its pod.
 */
const volumeOf = (cache: WeightsCache | null) => {
  if (cache === null || cache.claimName !== null || cache.storageClassName === null) return { emptyDir: {} }
  const storage = String(cache.sizeBytes ?? 0)
  return {
    ephemeral: {
      volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], storageClassName: cache.storageClassName, resources: { requests: { storage } } } }
    }
  }
}

/**
 * The container that merges the adapter into its base before the engine starts, and their shared volume. It runs after
 * the weights were checked.
 */
export const mergedFrom = (cache: WeightsCache | null, revision: RunRevision, { fetchImage }: Pick<OperatorSettings, "fetchImage">, security: object) => ({
  volume: { name: "merged", ...volumeOf(cache) },
  mount: { name: "merged", mountPath: "/merged", readOnly: true },
  container: {
    name: mergeContainer,
    image: fetchImage,
    securityContext: { ...security, runAsNonRoot: true, runAsUser: 2000, runAsGroup: 2000 },
    terminationMessagePolicy: "FallbackToLogsOnError",
    command: ["seatrial", "merge-weights"],
    args: [`--base=${weightsPath("/models", revision)}`, `--adapter=${adapterPath("/models", revision)}`, `--target=${mergedPath}`, "--replace"],
    env: [
      { name: "HOME", value: "/tmp" },
      { name: "NODE_OPTIONS", value: "--max-old-space-size=128 --max-semi-space-size=2" }
    ],
    resources: { requests: { cpu: "500m", memory: "256Mi" }, limits: { memory: "1Gi" } },
    volumeMounts: [
      // Unlike the check and the copy, it runs only if the folders exist.
      ...weightsMounts("/models", revision),
      { name: "merged", mountPath: "/merged" }
    ]
  }
})
