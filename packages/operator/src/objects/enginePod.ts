import { servedNames, weightCommits } from "@seatrial/domain"
import type { EngineAdapter, EngineContainer, EngineProbe } from "@seatrial/engines"
import type { KubeObject } from "@seatrial/kube"
import type { Run, RunRevision } from "@seatrial/store"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { pinned } from "../resources/imageDigest.ts"
import {
  deploymentLabel,
  engineContainer,
  enginePodName,
  enginePort,
  gpuPriceAnnotation,
  hostClassLabel,
  madeFromAnnotation,
  queueLabel,
  roleLabel,
  traceparentAnnotation
} from "../resources/objectNames.ts"
import type { PodClass, VolumeOf } from "../resources/PodClass.ts"
import { adapterPath, weightsMounts, weightsPath } from "../resources/weightFiles.ts"
import { digestOf, engineLabels, imageOn, pullSecrets, restrictedContainer, restrictedPod, runLabels } from "./engineObjects.ts"
import { engineResources, initResources } from "./engineResources.ts"
import { mergedFrom, mergedPath } from "./mergedWeights.ts"
import { weightsFrom } from "./weightsCopy.ts"

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
  /** Which engine of the revision; absent: the first. */
  readonly ordinal?: number
}

/** The callable name, and the name that the model gets when it is published or withdrawn. */
const callableNames = ({ model, orgSlug }: Run): ReadonlyArray<string> => {
  const slug = model.slice(model.indexOf("/") + 1)
  return [model, model === slug ? `${orgSlug}/${slug}` : slug]
}

/** The adapter that the engine serves. The merged model has none. */
const servedAdapter = ({ merged = false, revision }: EnginePodInput) => (merged ? undefined : revision.facts.adapter)

/** The chat template of the repository, if the engine would not find it by itself. An adapter's own template is passed with it. */
const chatTemplate = (input: EnginePodInput) => {
  const { chat_template, other_template } = input.revision.facts
  const adapter = servedAdapter(input)
  const isOfAdapter = adapter !== undefined && adapter.template !== "base"
  return other_template === true && chat_template !== null && !isOfAdapter ? { chatTemplate: chat_template } : {}
}

/** The folder for compiled kernels. */
const cacheFolder = ({ compileCache }: PodClass): string => (compileCache === null ? "/tmp/.cache" : "/cache")

/** What the engine's adapter makes of the revision: command, arguments, variables and probes. */
const startOf = (input: EnginePodInput): EngineContainer => {
  const { engine, merged = false, podClass, revision, run } = input
  const { chat_template, config } = revision.facts
  const adapter = servedAdapter(input)
  return engine.container({
    settings: revision.settings,
    config,
    servedNames: servedNames(engine.wire, callableNames(run), adapter !== undefined),
    modelPath: merged ? mergedPath : weightsPath("/models", revision),
    ...(merged ? {} : { commit: weightCommits(revision.facts)[0].commit }),
    ...chatTemplate(input),
    adapter: adapter === undefined ? undefined : { facts: adapter, path: adapterPath("/models", revision), chatTemplate: chat_template },
    hostClass: podClass.hostClass,
    bootSeconds: podClass.bootDeadlineSeconds,
    cachePath: cacheFolder(podClass)
  })
}

/** The image of the revision. The verified image serves, even if the host class or the tag points to another one now. */
const imageName = ({ podClass: { hostClass }, revision }: EnginePodInput): string => revision.engineImage ?? imageOn(hostClass, revision.settings.runtime)

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

const variables = (values: Readonly<Record<string, string>>) => Object.entries(values).map(([name, value]) => ({ name, value }))

const environmentOf = ({ podClass, run }: EnginePodInput, { env }: EngineContainer) => [
  // First, so that arguments and later variables can refer to it.
  { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
  { name: "HF_HUB_OFFLINE", value: "1" },
  ...(run.traceparent === null ? [] : [{ name: "TRACEPARENT", value: run.traceparent }]),
  ...podClass.env,
  { name: "HOME", value: "/tmp" },
  ...variables(cacheVariables(cacheFolder(podClass))),
  ...variables(env)
]

/** The Pod Security standard `restricted` for the container, with the exceptions that the host class allows. */
const containerSecurity = ({ addCapabilities, writableRoot }: PodClass["podSecurity"]) => ({
  ...restrictedContainer,
  readOnlyRootFilesystem: !writableRoot,
  capabilities: { drop: ["ALL"], ...(addCapabilities.length === 0 ? {} : { add: addCapabilities }) }
})

/** The same for the pod. `group`: the group that owns the folders of the image. */
const podSecurity = ({ podSecurity: { runAsRoot }, weightsCache }: PodClass, group: number) => ({
  ...(runAsRoot ? { runAsUser: 0, runAsGroup: 0, fsGroup: 0, seccompProfile: { type: "RuntimeDefault" } } : { ...restrictedPod, runAsGroup: group }),
  // Do not change the ownership of terabytes at each start.
  ...(weightsCache === null ? {} : { fsGroupChangePolicy: "OnRootMismatch" })
})

const probesOf = ({ bootDeadlineSeconds }: PodClass, { port, probes: { readiness, startup } }: EngineContainer) => {
  const probe = ({ path, periodSeconds, timeoutSeconds }: EngineProbe) => ({ httpGet: { path, port }, periodSeconds, timeoutSeconds })
  return {
    // The probe never ends a start by itself. The operator's own deadline does, with an explanation.
    startupProbe: { ...probe(startup), failureThreshold: Math.ceil((bootDeadlineSeconds + 60) / startup.periodSeconds) },
    readinessProbe: { ...probe(readiness), failureThreshold: 2 },
    // A busy engine answers late or not at all, and the trial keeps it busy, so the probe sends no request. Only an
    // engine that has not accepted a connection for five minutes is dead.
    livenessProbe: { tcpSocket: { port }, periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 30 }
  }
}

/** On a shared claim, each pod mounts only its own folder. */
const ownFolder = ({ claimName }: VolumeOf, subPath: string) => (claimName === null ? {} : { subPath })

const folderName = (name: string) => name.replace(/[^A-Za-z0-9_.-]/g, "-").replace(/^\.+/, "")

/**
 * The mount of the compile cache. Compiled code is executed, so the cache is never shared with another organization,
 * image, GPU type or model.
 */
const cacheMounts = (input: EnginePodInput) => {
  const { podClass, revision, run } = input
  if (podClass.compileCache === null) return []
  const owners = [run.orgId, imageName(input), podClass.hostClass.gpu_pool, revision.facts.commit]
  return [{ name: "cache", mountPath: "/cache", ...ownFolder(podClass.compileCache, owners.map(folderName).join("/")) }]
}

const writable = (name: string, { claimName, sizeBytes }: VolumeOf) =>
  claimName === null ? { name, emptyDir: sizeBytes === null ? {} : { sizeLimit: String(sizeBytes) } } : { name, persistentVolumeClaim: { claimName } }

/** The weights in the pod: the volumes that hold them, the containers that prepare them, and the merged model if it serves. */
const weightsOf = ({ merged = false, podClass, revision, settings, weightsClaim }: EnginePodInput) => {
  const weights = weightsFrom(podClass.weightsCache, revision, settings, weightsClaim, restrictedContainer)
  const merges = merged ? [mergedFrom(podClass.weightsCache, revision, settings, restrictedContainer)] : []
  return {
    initContainers: [...weights.containers.initContainers, ...merges.map(({ container }) => container)].map((container) => ({
      ...container,
      resources: initResources(podClass, container.resources)
    })),
    mounts: [...weightsMounts("/models", revision), ...merges.map(({ mount }) => mount)],
    volumes: [...weights.volumes, ...merges.map(({ volume }) => volume)]
  }
}

const volumesOf = ({ compileCache, scratch, sharedMemoryBytes }: PodClass) => [
  writable("scratch", scratch),
  ...(compileCache === null ? [] : [writable("cache", compileCache)]),
  // The default of 64 MiB is too small for tensor parallelism.
  { name: "shm", emptyDir: { medium: "Memory", sizeLimit: String(sharedMemoryBytes) } }
]

const containerOf = (input: EnginePodInput, start: EngineContainer, weightsMounted: ReturnType<typeof weightsOf>["mounts"]) => {
  const { podClass, revision, run } = input
  const { drainSeconds } = podClass
  return {
    name: engineContainer,
    image: pinned(imageName(input), revision.engineImage === null ? null : revision.engineDigest),
    command: start.command,
    args: start.args,
    env: environmentOf(input, start),
    ports: [{ name: enginePort, containerPort: start.port, protocol: "TCP" }],
    resources: engineResources(podClass, revision),
    securityContext: containerSecurity(podClass.podSecurity),
    ...(drainSeconds === 0 ? {} : { lifecycle: { preStop: { sleep: { seconds: drainSeconds } } } }),
    ...probesOf(podClass, start),
    terminationMessagePolicy: "FallbackToLogsOnError",
    volumeMounts: [
      ...weightsMounted,
      { name: "scratch", mountPath: "/tmp", ...ownFolder(podClass.scratch, enginePodName(run.id, input.ordinal)) },
      ...cacheMounts(input),
      { name: "shm", mountPath: "/dev/shm" }
    ]
  }
}

type Affinity = PodClass["affinity"]

/** Prefers other nodes than these. */
const avoiding = (affinity: Affinity, nodes: ReadonlyArray<string>): Affinity => {
  if (nodes.length === 0) return affinity
  const preference = { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "NotIn" as const, values: [...nodes].sort() }] }
  const preferred = [...(affinity.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []), { weight: 100, preference }]
  return { ...affinity, nodeAffinity: { ...affinity.nodeAffinity, preferredDuringSchedulingIgnoredDuringExecution: preferred } }
}

/**
 * Engines prefer zones and nodes without another engine of the revision. They have no topology spread constraints,
 * because the scheduler leaves nodes without one of the topology keys out of all constraints, and many clusters have no
 * zones.
 */
const apart = (affinity: Affinity, { run }: EnginePodInput): Affinity => {
  const labelSelector = { matchLabels: { [deploymentLabel]: run.id, [roleLabel]: "engine" } }
  const terms = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"].map((topologyKey) => ({
    weight: 100,
    podAffinityTerm: { topologyKey, labelSelector }
  }))
  const preferred = [...(affinity.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []), ...terms]
  return { ...affinity, podAntiAffinity: { ...affinity.podAntiAffinity, preferredDuringSchedulingIgnoredDuringExecution: preferred } }
}

const affinityField = (affinity: Affinity) => (Object.keys(affinity).length === 0 ? {} : { affinity })

/** The affinity of the class, with the operator's preferences. The scheduler does not wait for those. */
const affinityOf = (input: EnginePodInput) => affinityField(apart(avoiding(input.podClass.affinity, input.avoid ?? []), input))

/**
 * The affinity that counts for the digest of the pod. Earlier versions gave no preference to the first engine: with it, a
 * pod of theirs that has not started would be outdated after an upgrade.
 */
const countedAffinity = (input: EnginePodInput) => affinityField((input.ordinal ?? 0) === 0 ? input.podClass.affinity : apart(input.podClass.affinity, input))

const specOf = (input: EnginePodInput) => {
  const { podClass, settings } = input
  const { drainSeconds, nodeSelector, priorityClassName, resourceClaims, runtimeClassName, schedulerName, tolerations } = podClass
  const start = startOf(input)
  const weights = weightsOf(input)
  return {
    restartPolicy: "Always",
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // Applies if someone else deletes the pod, for example a node drain: open requests may continue for this long, and
    // then the engine has ten seconds to end.
    terminationGracePeriodSeconds: drainSeconds + 10,
    ...(runtimeClassName === null ? {} : { runtimeClassName }),
    ...(priorityClassName === null ? {} : { priorityClassName }),
    ...(schedulerName === null ? {} : { schedulerName }),
    ...(resourceClaims.length === 0 ? {} : { resourceClaims }),
    nodeSelector,
    ...countedAffinity(input),
    tolerations,
    ...pullSecrets(settings),
    securityContext: podSecurity(podClass, start.group),
    initContainers: weights.initContainers,
    containers: [containerOf(input, start, weights.mounts)],
    volumes: [...weights.volumes, ...volumesOf(podClass)]
  }
}

/** What the pod is made from, as a digest. Labels and annotations of the class count if there are any. */
const madeFrom = ({ annotations, labels }: PodClass, spec: object): string =>
  digestOf({
    ...spec,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations })
  })

/**
 * The pod of a run's engine: read-only weights, offline, no credentials, all GPUs of the host class, ready when the
 * engine reports it. The custom resource does not own the pod: its deletion must not delete a serving engine. Only the
 * operator deletes the pod.
 */
export const enginePod = (input: EnginePodInput): KubeObject => {
  const { podClass, run, settings } = input
  const { annotations, hostClass, labels, queueName } = podClass
  const spec = specOf(input)
  const object = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: enginePodName(run.id, input.ordinal),
      namespace: settings.namespace,
      labels: {
        ...labels,
        ...engineLabels(run),
        ...runLabels(run, "engine"),
        [hostClassLabel]: hostClass.name,
        ...(queueName === null ? {} : { [queueLabel]: queueName })
      },
      annotations: {
        ...annotations,
        [gpuPriceAnnotation]: hostClass.price_per_gpu_hour_micros,
        ...(run.traceparent === null ? {} : { [traceparentAnnotation]: run.traceparent }),
        [madeFromAnnotation]: madeFrom(podClass, spec)
      }
    },
    // Preferences do not make another pod outdated.
    spec: { ...spec, ...affinityOf(input) }
  }
  return object
}
