import type { EngineAdapter } from "@seatrial/engines"
import type { KubeObject } from "@seatrial/kube"
import type { Run, RunRevision } from "@seatrial/store"
import type { PodClass } from "../resources/HostClassResource.ts"
import { deploymentLabel, enginePodName, gpuPriceAnnotation, hostClassLabel, organizationLabel, roleLabel } from "../resources/objectNames.ts"

/** Labels that every object of a run carries. */
export const runLabels = (run: Run, role: "engine" | "fetch" | "deployment"): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/managed-by": "seatrial",
  [organizationLabel]: run.orgSlug,
  [deploymentLabel]: run.id,
  ...(role === "deployment" ? {} : { [roleLabel]: role })
})

/** Where a commit's files lie, under the place where the claim is mounted. */
export const weightsPath = (mount: string, { facts }: RunRevision): string => `${mount}/${facts.repo}/${facts.commit}`

/** What Pod Security calls `restricted`. */
export const restrictedPod = { runAsNonRoot: true, runAsUser: 2000, runAsGroup: 2000, fsGroup: 2000, seccompProfile: { type: "RuntimeDefault" } }
export const restrictedContainer = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } }

/** The callable name, and the one that the model has once it is published or withdrawn. */
const servedNames = ({ model, orgSlug }: Run): ReadonlyArray<string> => {
  const slug = model.slice(model.indexOf("/") + 1)
  return [model, model === slug ? `${orgSlug}/${slug}` : slug]
}

interface EnginePodInput {
  readonly run: Run
  readonly revision: RunRevision
  readonly podClass: PodClass
  readonly engine: EngineAdapter
  readonly namespace: string
  readonly weightsClaim: string
}

/**
 * The pod of a run's engine: the weights read-only and offline, no credentials, all GPUs of the host class, ready when the engine says so. Nobody owns it: what
 * serves must not go with its custom resource, so the operator alone removes it.
 */
export const enginePod = ({ engine, namespace, podClass, revision, run, weightsClaim }: EnginePodInput): KubeObject => {
  const { hostClass } = podClass
  const image = hostClass.runtimes.find(({ runtime }) => runtime === revision.settings.runtime)?.image ?? hostClass.runtimes[0].image
  const container = engine.container({ settings: revision.settings, servedNames: servedNames(run), modelPath: weightsPath("/models", revision), hostClass })
  const gpus = { [podClass.gpuResource]: String(hostClass.gpu_count) }
  const probe = { httpGet: { path: container.readinessPath, port: container.port } }
  const object = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: enginePodName(run.id),
      namespace,
      labels: { ...runLabels(run, "engine"), [hostClassLabel]: hostClass.name },
      annotations: { [gpuPriceAnnotation]: hostClass.price_per_gpu_hour_micros }
    },
    spec: {
      restartPolicy: "Always",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 30,
      nodeSelector: podClass.nodeSelector,
      tolerations: podClass.tolerations,
      securityContext: restrictedPod,
      containers: [
        {
          name: "engine",
          image,
          command: container.command,
          args: container.args,
          env: [
            // First, so that arguments and later variables can refer to it.
            { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
            { name: "HF_HUB_OFFLINE", value: "1" },
            { name: "HOME", value: "/tmp" },
            ...Object.entries(container.env).map(([name, value]) => ({ name, value }))
          ],
          ports: [{ name: "http", containerPort: container.port, protocol: "TCP" }],
          resources: { requests: gpus, limits: gpus },
          securityContext: restrictedContainer,
          // Never ends a start by itself: the deadline is ours, and says so.
          startupProbe: { ...probe, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: podClass.bootDeadlineSeconds + 60 },
          readinessProbe: { ...probe, periodSeconds: 2, timeoutSeconds: 25, failureThreshold: 2 },
          terminationMessagePolicy: "FallbackToLogsOnError",
          volumeMounts: [
            { name: "weights", mountPath: "/models", readOnly: true },
            { name: "scratch", mountPath: "/tmp" },
            { name: "shm", mountPath: "/dev/shm" }
          ]
        }
      ],
      volumes: [
        { name: "weights", persistentVolumeClaim: { claimName: weightsClaim, readOnly: true } },
        { name: "scratch", emptyDir: {} },
        // The default of 64 MiB is too small for tensor parallelism.
        { name: "shm", emptyDir: { medium: "Memory", sizeLimit: hostClass.gpu_count > 1 ? "8Gi" : "1Gi" } }
      ]
    }
  }
  return object
}
