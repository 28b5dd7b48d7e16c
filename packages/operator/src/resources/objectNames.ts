import { createHash } from "node:crypto"
import { DeploymentId } from "@seatrial/domain"
import type { ReferenceAttempt } from "@seatrial/store"
import { Option, Schema } from "effect"

/** Label of every object of a run: the slug of its organization. */
export const organizationLabel = "seatrial.dev/organization"
/** Label of every object of a run: its deployment id. */
export const deploymentLabel = "seatrial.dev/deployment"
/** Label of an engine's pod: its host class. */
export const hostClassLabel = "seatrial.dev/host-class"
/** Label of an engine's pod: the queue of Kueue that admits it. */
export const queueLabel = "kueue.x-k8s.io/queue-name"
/** Label of pods: `engine`, `fetch` or `reference`. */
export const roleLabel = "seatrial.dev/role"
/** Label of a Job that computes the reference of a commit, and of its pods: the name of the Job. */
export const referenceLabel = "seatrial.dev/reference"
/** Annotation of an engine's pod: its price in micro-dollars per GPU and hour. */
export const gpuPriceAnnotation = "seatrial.dev/price-per-gpu-hour"
/** Annotation of an engine's pod: the trace of the request that created the deployment, in W3C Trace Context format. */
export const traceparentAnnotation = "seatrial.dev/traceparent"

/**
 * Annotation of an engine's pod: the copies of weights on its node that other pods may use, in the format of `seatrial
 * copy-weights`.
 */
export const weightsInUseAnnotation = "seatrial.dev/weights-in-use"

/** Main container of an engine's pod. Something else may add more containers to the pod, in any position. */
export const engineContainer = "engine"
/** Name of the port on which the engine answers. */
export const enginePort = "http"
/** Main container of a download's pod. */
export const fetchContainer = "fetch"

/** Container of an engine's pod that copies the weights to its node. */
export const copyContainer = "copy-weights"
/** Container of an engine's pod that checks the weights in the store, if the engine reads them there. */
export const checkContainer = "check-weights"

/** Container that merges base and adapter for an engine that serves the merged model for comparison. */
export const mergeContainer = "merge-weights"

/** Container that computes the reference of a commit. */
export const referenceContainer = "reference"

/**
 * Annotation of an engine's pod and of a download's Job: a digest of its specification. It identifies an outdated Job,
 * or an outdated pod that has not started.
 */
export const madeFromAnnotation = "seatrial.dev/made-from"

/** Names of a run's objects. They follow from its id alone, so that a repeated write meets its own earlier one. */
export const objectName = (id: DeploymentId): string => id.replaceAll("_", "-")
/** `ordinal`: which of the engines of the run's revision. Its first engine has the ordinal 0. */
export const enginePodName = (id: DeploymentId, ordinal = 0): string => `${objectName(id)}-engine-${ordinal}`
export const fetchJobName = (id: DeploymentId): string => `${objectName(id)}-fetch`
export const hubSecretName = (id: DeploymentId): string => `${objectName(id)}-hub`

/** The Job that computes the reference of a commit. All runs that would compute it in the same way share it. */
export const referenceJobName = ({ commit, madeFrom, repo, textsVersion }: ReferenceAttempt): string =>
  `reference-${createHash("sha256").update(`${repo}@${commit}#${textsVersion}#${madeFrom}`).digest("hex").slice(0, 40)}`

/** The ordinal of the run's engine with that pod; null if the pod is not an engine of the run. */
export const engineOrdinal = (id: DeploymentId, pod: string): number | null => {
  const ordinal = Number(pod.slice(pod.lastIndexOf("-") + 1))
  return Number.isInteger(ordinal) && pod === enginePodName(id, ordinal) ? ordinal : null
}

const decodeId = Schema.decodeUnknownOption(DeploymentId)

/** The run of the object's label. */
export const deploymentOf = (labels: Readonly<Record<string, string>> | undefined): Option.Option<DeploymentId> => decodeId(labels?.[deploymentLabel])

/** The run for which an object of that name was created. */
export const deploymentOfName = (name: string): Option.Option<DeploymentId> => decodeId(name.slice(0, 30).replace("-", "_"))

/** The run that a custom resource of that name shows: the name must be exactly the run's. */
export const deploymentOfResource = (name: string): Option.Option<DeploymentId> => Option.filter(deploymentOfName(name), (id) => objectName(id) === name)

/** Name of an event that is recorded once for its subject: a pod's uid or a deployment's id. */
export const eventName = (id: DeploymentId, reason: string, about: string): string => `${objectName(id)}.${reason.toLowerCase()}.${about.replaceAll("_", "-")}`

/** Finalizer of applied objects. It keeps an object until its deletion is recorded. */
export const finalizer = "seatrial.dev/retire"
