import { weightCommits } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import type { KubeObject } from "@seatrial/kube"
import type { ReferenceAttempt, ReferenceKey, RunRevision } from "@seatrial/store"
import { type ReferenceRequest, referenceProgram, referenceVersion } from "@seatrial/trial"
import { referenceDeadline, referenceJobDeadline, referenceKept } from "../limits.ts"
import type { OperatorSettings } from "../OperatorSettings.ts"
import { checkContainer, referenceContainer, referenceJobName, referenceLabel, roleLabel } from "../resources/objectNames.ts"
import type { PodClass, ReferenceJobOf } from "../resources/PodClass.ts"
import { modelArguments, modelMount, weightsPath } from "../resources/weightFiles.ts"
import { digestOf, imageOn, pullSecrets, restrictedContainer, restrictedPod } from "./engineObjects.ts"

/** The commit that a trial of the revision compares the engine with. An adapter is compared by its base. */
export const referenceKeyOf = ({ facts }: RunRevision): ReferenceKey => {
  const [{ commit, repo }] = weightCommits(facts)
  return { repo, commit, textsVersion: referenceVersion }
}

/** The exit codes of a container that something else ended: SIGKILL, SIGTERM, and a restart of its node. */
export const endedByOthers: ReadonlyArray<number> = [137, 143, 255]

/** How a reference is computed. */
export interface ReferencePlan {
  /** `madeFrom` identifies everything that the result depends on, apart from the commit and the texts. */
  readonly attempt: ReferenceAttempt
  /** The name of the Job. */
  readonly name: string
  readonly image: string
  readonly job: ReferenceJobOf
}

/**
 * How the reference of the revision's commit is computed on the class; null if it is not. Images of engines that need no
 * GPU, and of those in whose place another engine runs, have no Python.
 */
export const referencePlan = (
  revision: RunRevision,
  { hostClass, referenceJob: job }: PodClass,
  { needsGpu }: Pick<EngineAdapter, "needsGpu">
): ReferencePlan | null => {
  const own = needsGpu && !hostClass.simulated ? imageOn(hostClass, revision.settings.runtime) : null
  const image = job?.image ?? own
  if (job === undefined || image === null) return null
  const attempt = { ...referenceKeyOf(revision), madeFrom: digestOf([image, job.python, job.cpu, job.memoryBytes, referenceProgram]) }
  return { attempt, name: referenceJobName(attempt), image, job }
}

interface ReferenceJobInput {
  readonly plan: ReferencePlan
  readonly revision: RunRevision
  readonly settings: Pick<OperatorSettings, "fetchImage" | "namespace" | "pullSecrets">
  readonly weightsClaim: string
}

/** The argument with the request. The Job keeps it for the reader of the result. */
export const requestArgument = "--request="

/** Verifies the files, as before the start of an engine: the reference belongs to the commit. */
const checkWeights = ({ revision, settings }: ReferenceJobInput) => ({
  name: checkContainer,
  image: settings.fetchImage,
  command: ["seatrial", "check-weights"],
  args: modelArguments(revision, "/models"),
  env: [
    { name: "HOME", value: "/tmp" },
    { name: "NODE_OPTIONS", value: "--max-old-space-size=128 --max-semi-space-size=2" }
  ],
  resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "1Gi" } },
  securityContext: restrictedContainer,
  terminationMessagePolicy: "FallbackToLogsOnError",
  volumeMounts: [modelMount("/models", revision)]
})

const computeReference = ({ plan: { image, job }, revision }: ReferenceJobInput, request: ReferenceRequest) => ({
  name: referenceContainer,
  image,
  command: [job.python, "-c", referenceProgram],
  args: [weightsPath("/models", revision), `--memory-bytes=${Math.floor(job.memoryBytes / 2)}`, `${requestArgument}${JSON.stringify(request)}`],
  env: [
    { name: "HOME", value: "/tmp" },
    { name: "USER", value: "reference" },
    { name: "LOGNAME", value: "reference" },
    { name: "HF_HUB_OFFLINE", value: "1" },
    { name: "OMP_NUM_THREADS", value: String(job.cpu) },
    // Images of engines ask for all GPUs of the node, also without a request for one.
    { name: "NVIDIA_VISIBLE_DEVICES", value: "void" }
  ],
  resources: { requests: { cpu: String(job.cpu), memory: String(job.memoryBytes) }, limits: { memory: String(job.memoryBytes) } },
  securityContext: restrictedContainer,
  volumeMounts: [modelMount("/models", revision), { name: "scratch", mountPath: "/tmp" }]
})

const podOf = (input: ReferenceJobInput, request: ReferenceRequest) => ({
  restartPolicy: "Never",
  activeDeadlineSeconds: referenceDeadline / 1_000,
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  nodeSelector: input.plan.job.nodeSelector,
  tolerations: input.plan.job.tolerations,
  ...pullSecrets(input.settings),
  securityContext: { ...restrictedPod, fsGroupChangePolicy: "OnRootMismatch" },
  initContainers: [checkWeights(input)],
  containers: [computeReference(input, request)],
  volumes: [
    { name: "weights", persistentVolumeClaim: { claimName: input.weightsClaim, readOnly: true } },
    { name: "scratch", emptyDir: {} }
  ]
})

/**
 * The Job that computes the reference of a commit: processors only, without network, with the verified files. It belongs
 * to no run, because every run of the commit needs the same result. The program and its request are arguments, so that
 * the Job is one object that never changes.
 */
export const referenceJob = (input: ReferenceJobInput, request: ReferenceRequest): KubeObject => {
  const { plan, settings } = input
  const labels = {
    "app.kubernetes.io/name": "seatrial-reference",
    "app.kubernetes.io/instance": plan.name,
    "app.kubernetes.io/component": "reference",
    "app.kubernetes.io/part-of": "seatrial",
    "app.kubernetes.io/managed-by": "seatrial",
    [roleLabel]: "reference",
    [referenceLabel]: plan.name
  }
  const object = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name: plan.name, namespace: settings.namespace, labels },
    spec: {
      backoffLimit: 2,
      activeDeadlineSeconds: referenceJobDeadline / 1_000,
      ttlSecondsAfterFinished: referenceKept / 1_000,
      podFailurePolicy: {
        rules: [
          // An eviction, a preemption or a lost node does not count as a failed computation.
          { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget", status: "True" }] },
          // The same files and program fail again. What something else ended is tried again, as often as `backoffLimit` allows.
          { action: "FailJob", onExitCodes: { containerName: referenceContainer, operator: "NotIn", values: [0, ...endedByOthers] } }
        ]
      },
      template: { metadata: { labels }, spec: podOf(input, request) }
    }
  }
  return object
}
