import { createHash } from "node:crypto"
import { type HostClass, type Runtime, servedNames, weightCommits } from "@seatrial/domain"
import type { EngineAdapter, EngineProbe } from "@seatrial/engines"
import type { KubeObject } from "@seatrial/kube"
import type { Run, RunRevision } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import type { PodClass, VolumeOf } from "../resources/HostClassResource.ts"
import { pinned } from "../resources/imageDigest.ts"
import {
  deploymentLabel,
  enginePodName,
  gpuPriceAnnotation,
  hostClassLabel,
  madeFromAnnotation,
  objectName,
  organizationLabel,
  queueLabel,
  roleLabel,
  traceparentAnnotation
} from "../resources/objectNames.ts"
import { adapterPath, weightsMounts, weightsPath } from "../resources/weightFiles.ts"
import { mergedFrom, mergedPath } from "./mergedWeights.ts"
import { weightsFrom } from "./weightsCopy.ts"

/** Labels of every object of a run. */
export const runLabels = (run: Run, role: "engine" | "fetch" | "deployment"): Readonly<Record<string, string>> => ({
  "app.kubernetes.io/managed-by": "seatrial",
  [organizationLabel]: run.orgSlug,
  [deploymentLabel]: run.id,
  ...(role === "deployment" ? {} : { [roleLabel]: role })
})

/** The Pod Security standard `restricted`. */
export const restrictedPod = { runAsNonRoot: true, runAsUser: 2000, runAsGroup: 2000, fsGroup: 2000, seccompProfile: { type: "RuntimeDefault" } }
export const restrictedContainer = { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } }

/** The image pull secrets of a pod. */
export const pullSecrets = ({ pullSecrets }: Pick<OperatorSettings, "pullSecrets">) =>
  pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }

/** The callable name, and the name that the model gets when it is published or withdrawn. */
const callableNames = ({ model, orgSlug }: Run): ReadonlyArray<string> => {
  const slug = model.slice(model.indexOf("/") + 1)
  return [model, model === slug ? `${orgSlug}/${slug}` : slug]
}

/** The folders of compiled kernels, and a user name that does not depend on the image. */
const cacheVariables = (folder: string) => ({
  USER: "engine",
  LOGNAME: "engine",
  XDG_CACHE_HOME: folder,
  TRITON_CACHE_DIR: `${folder}/triton`,
  TORCHINDUCTOR_CACHE_DIR: `${folder}/inductor`,
  FLASHINFER_WORKSPACE_BASE: `${folder}/flashinfer`,
  CUDA_CACHE_PATH: `${folder}/cuda`
})

const writable = (name: string, { claimName, sizeBytes }: VolumeOf) =>
  claimName === null ? { name, emptyDir: sizeBytes === null ? {} : { sizeLimit: String(sizeBytes) } } : { name, persistentVolumeClaim: { claimName } }

/** On a shared claim, each pod mounts only its own folder. */
const ownFolder = ({ claimName }: VolumeOf, subPath: string) => (claimName === null ? {} : { subPath })

const folder = (name: string) => name.replace(/[^A-Za-z0-9_.-]/g, "-").replace(/^\.+/, "")

/** The Pod Security standard `restricted`, with the exceptions that the host class allows. */
const securityOf = ({ addCapabilities, runAsRoot, writableRoot }: PodClass["podSecurity"]) => ({
  pod: runAsRoot ? { runAsUser: 0, runAsGroup: 0, fsGroup: 0, seccompProfile: { type: "RuntimeDefault" } } : restrictedPod,
  container: {
    ...restrictedContainer,
    readOnlyRootFilesystem: !writableRoot,
    capabilities: { drop: ["ALL"], ...(addCapabilities.length === 0 ? {} : { add: addCapabilities }) }
  }
})

/**
 * Protects a serving engine from eviction: a node drain is refused until its requests go to another engine. An engine
 * that is not ready may be evicted. The budget uses a number of pods, because no controller owns the pod.
 */
export const disruptionBudget = (run: Run, namespace: string): KubeObject => {
  const object = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: objectName(run.id), namespace, labels: runLabels(run, "engine") },
    spec: {
      minAvailable: 1,
      unhealthyPodEvictionPolicy: "AlwaysAllow",
      selector: { matchLabels: { [deploymentLabel]: run.id, [roleLabel]: "engine" } }
    }
  }
  return object
}

/** The image with which the class runs the engine. */
export const imageOn = ({ runtimes }: HostClass, runtime: Runtime): string =>
  runtimes.find((offered) => offered.runtime === runtime)?.image ?? runtimes[0].image

/**
 * Variables that do not change the specification: the trace of the request, and the hub token, whose existence only the
 * database knows.
 */
const ignoredVariables = new Set<unknown>(["TRACEPARENT", "HF_TOKEN"])

/** Digest that identifies a specification. Variables of `ignoredVariables` and avoided nodes do not count. */
export const digestOf = (spec: object): string => {
  const text = JSON.stringify(spec, (key, value: unknown) =>
    key === "affinity" ? undefined : key === "env" && Array.isArray(value) ? value.filter(({ name }) => !ignoredVariables.has(name)) : value
  )
  return createHash("sha256").update(text).digest("hex").slice(0, 32)
}

/** A preference only: the scheduler does not wait for it. */
const awayFrom = (nodes: ReadonlyArray<string>) => {
  if (nodes.length === 0) return {}
  const preference = { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "NotIn", values: [...nodes].sort() }] }
  return { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] } } }
}

interface EnginePodInput {
  readonly run: Run
  readonly revision: RunRevision
  readonly podClass: PodClass
  readonly engine: EngineAdapter
  readonly settings: Pick<OperatorSettings, "fetchImage" | "namespace" | "pullSecrets">
  readonly weightsClaim: string
  /** Whether the pod serves base and adapter merged, for comparison. */
  readonly merged?: boolean
  /** Hostnames of nodes that the pod should avoid. It runs there if no others are available. */
  readonly avoid?: ReadonlyArray<string>
}

/**
 * The pod of a run's engine: read-only weights, offline, no credentials, all GPUs of the host class, ready when the
 * engine reports it. The pod has no owner, because deleting the custom resource must not delete a serving engine. Only
 * the operator deletes it.
 */
export const enginePod = ({ avoid = [], engine, merged = false, podClass, revision, run, settings, weightsClaim }: EnginePodInput): KubeObject => {
  const { namespace } = settings
  const { hostClass } = podClass
  // The verified image serves, even if the host class or the tag points to another one now.
  const imageName = revision.engineImage ?? imageOn(hostClass, revision.settings.runtime)
  const image = pinned(imageName, revision.engineImage === null ? null : revision.engineDigest)
  const { adapter, chat_template, other_template } = revision.facts
  const ownTemplate = !merged && adapter !== undefined && adapter.template !== "base"
  const cachePath = podClass.compileCache === null ? "/tmp/.cache" : "/cache"
  const isAdapted = !merged && adapter !== undefined
  const container = engine.container({
    settings: revision.settings,
    config: revision.facts.config,
    servedNames: servedNames(engine.wire, callableNames(run), isAdapted),
    modelPath: merged ? mergedPath : weightsPath("/models", revision),
    ...(merged ? {} : { commit: weightCommits(revision.facts)[0].commit }),
    ...(other_template === true && chat_template !== null && !ownTemplate ? { chatTemplate: chat_template } : {}),
    adapter: merged || adapter === undefined ? undefined : { facts: adapter, path: adapterPath("/models", revision), chatTemplate: chat_template },
    hostClass,
    bootSeconds: podClass.bootDeadlineSeconds,
    cachePath
  })
  const gpus = { [podClass.gpuResource]: String(hostClass.gpu_count) }
  const memory = podClass.memoryBytes === null ? {} : { memory: String(podClass.memoryBytes) }
  const cpu = podClass.cpu === null ? {} : { cpu: podClass.cpu }
  const { compileCache, drainSeconds, queueName, runtimeClassName, scratch, sharedMemoryBytes } = podClass
  const security = securityOf(podClass.podSecurity)
  const user = podClass.podSecurity.runAsRoot ? security.pod : { ...security.pod, runAsGroup: container.group }
  const weights = weightsFrom(podClass.weightsCache, revision, settings, weightsClaim, restrictedContainer)
  const merge = merged ? mergedFrom(podClass.weightsCache, revision, settings, restrictedContainer) : null
  // Do not change the ownership of terabytes at each start.
  const pod = podClass.weightsCache === null ? user : { ...user, fsGroupChangePolicy: "OnRootMismatch" }
  const probe = ({ path, periodSeconds, timeoutSeconds }: EngineProbe) => ({ httpGet: { path, port: container.port }, periodSeconds, timeoutSeconds })
  const { readiness, startup } = container.probes
  const object = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: enginePodName(run.id),
      namespace,
      labels: { ...runLabels(run, "engine"), [hostClassLabel]: hostClass.name, ...(queueName === null ? {} : { [queueLabel]: queueName }) },
      annotations: {
        [gpuPriceAnnotation]: hostClass.price_per_gpu_hour_micros,
        ...(run.traceparent === null ? {} : { [traceparentAnnotation]: run.traceparent })
      }
    },
    spec: {
      restartPolicy: "Always",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // Applies if someone else deletes the pod, for example a node drain: open requests may continue for this long,
      // and then the engine has ten seconds to end.
      terminationGracePeriodSeconds: drainSeconds + 10,
      ...(runtimeClassName === null ? {} : { runtimeClassName }),
      nodeSelector: podClass.nodeSelector,
      ...awayFrom(avoid),
      tolerations: podClass.tolerations,
      ...pullSecrets(settings),
      securityContext: pod,
      initContainers: [...weights.containers.initContainers, ...(merge === null ? [] : [merge.container])],
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
            ...(run.traceparent === null ? [] : [{ name: "TRACEPARENT", value: run.traceparent }]),
            { name: "HOME", value: "/tmp" },
            ...Object.entries(cacheVariables(cachePath)).map(([name, value]) => ({ name, value })),
            ...Object.entries(container.env).map(([name, value]) => ({ name, value }))
          ],
          ports: [{ name: "http", containerPort: container.port, protocol: "TCP" }],
          resources: { requests: { ...cpu, ...memory, ...gpus }, limits: { ...memory, ...gpus } },
          securityContext: security.container,
          ...(drainSeconds === 0 ? {} : { lifecycle: { preStop: { sleep: { seconds: drainSeconds } } } }),
          // The probe never ends a start by itself. The operator's own deadline does, with an explanation.
          startupProbe: { ...probe(startup), failureThreshold: Math.ceil((podClass.bootDeadlineSeconds + 60) / startup.periodSeconds) },
          readinessProbe: { ...probe(readiness), failureThreshold: 2 },
          // A busy engine answers late or not at all, and the trial keeps it busy, so the probe sends no request. Only
          // an engine that has not accepted a connection for five minutes is dead.
          livenessProbe: { tcpSocket: { port: container.port }, periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 30 },
          terminationMessagePolicy: "FallbackToLogsOnError",
          volumeMounts: [
            ...weightsMounts("/models", revision),
            ...(merge === null ? [] : [merge.mount]),
            { name: "scratch", mountPath: "/tmp", ...ownFolder(scratch, enginePodName(run.id)) },
            ...(compileCache === null
              ? []
              : [
                  {
                    name: "cache",
                    mountPath: "/cache",
                    // Compiled code is executed, so the cache is never shared with another organization, image, GPU
                    // type or model.
                    ...ownFolder(compileCache, [run.orgId, imageName, hostClass.gpu_pool, revision.facts.commit].map(folder).join("/"))
                  }
                ]),
            { name: "shm", mountPath: "/dev/shm" }
          ]
        }
      ],
      volumes: [
        ...weights.volumes,
        ...(merge === null ? [] : [merge.volume]),
        writable("scratch", scratch),
        ...(compileCache === null ? [] : [writable("cache", compileCache)]),
        // The default of 64 MiB is too small for tensor parallelism.
        { name: "shm", emptyDir: { medium: "Memory", sizeLimit: String(sharedMemoryBytes) } }
      ]
    }
  }
  const { metadata } = object
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, [madeFromAnnotation]: digestOf(object.spec) } } }
}
