import { endedUnactivated, type Phase } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { type Run, type RunRevision, Runs } from "@seatrial/store"
import { Effect, Option } from "effect"
import { referenceDeadline } from "../limits.ts"
import { endedByOthers, type ReferencePlan, referencePlan } from "../objects/referenceJob.ts"
import { ObservedReference } from "../observation/ObservedReference.ts"
import { referenceContainer, referenceLabel } from "../resources/objectNames.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { WatchedJob, WatchedPod } from "../resources/watched.ts"
import type { Cluster } from "./Cluster.ts"
import type { GatherFrom } from "./gather.ts"
import { type ContainerExit, conditionOf, hasEnded, millisOf } from "./podStatus.ts"

const holds = ({ status }: WatchedJob, name: string): boolean => status?.conditions?.some(({ status: is, type }) => type === name && is === "True") === true

/** Exits that the node reports in place of a program's own: it never ran, or the node lost its state. */
const notOwn: ReadonlySet<string | undefined> = new Set(["StartError", "ContainerCannotRun", "Unknown", "ContainerStatusUnknown"])

/** Whether the computation itself had most of the pod's time. The rest may have gone to images and files. */
const hadItsTime = ({ finishedAt, startedAt }: ContainerExit): boolean => {
  const [from, to] = [millisOf(startedAt), millisOf(finishedAt)]
  return from !== null && to !== null && to - from >= referenceDeadline / 2
}

/**
 * Why the computation in the pod has no result, if another attempt would end so too. Null if it did not end by itself:
 * the cluster evicted, deleted or lost the pod, or its files were not complete.
 */
const causeIn = (pod: WatchedPod): string | null => {
  const exit = pod.status?.containerStatuses?.find(({ name }) => name === referenceContainer)?.state?.terminated
  const isDisrupted = pod.metadata.deletionTimestamp !== undefined || conditionOf(pod, "DisruptionTarget")?.status === "True"
  if (exit === undefined || exit.exitCode === 0 || isDisrupted || notOwn.has(exit.reason)) return null
  if (pod.status?.reason === "DeadlineExceeded") return hadItsTime(exit) ? "timed_out" : null
  if (exit.reason === "OOMKilled") return "out_of_memory"
  return endedByOthers.includes(exit.exitCode) ? null : "computation_failed"
}

/** Whether a node has the pod, and the pod has not ended. */
const isPlaced = (pod: WatchedPod): boolean => pod.spec?.nodeName !== undefined && !hasEnded(pod)

/** Since when the Job has waited for a node, Unix milliseconds. Null if it may soon get another pod. `pods`: the pods of the Job. */
export const unplacedSince = ({ metadata }: WatchedJob, pods: ReadonlyArray<WatchedPod>): number | null => {
  if (pods.length === 0) return millisOf(metadata.creationTimestamp)
  const pending = pods.filter((pod) => pod.spec?.nodeName === undefined && !hasEnded(pod))
  return pending.reduce<number | null>((latest, pod) => Math.max(latest ?? 0, millisOf(pod.metadata.creationTimestamp) ?? 0), null)
}

/** The state of the Job of a reference. `pods`: the pods of the Job. */
export const observeReferenceJob = (job: WatchedJob, pods: ReadonlyArray<WatchedPod>): ObservedReference => {
  if (job.metadata.deletionTimestamp !== undefined) return ObservedReference.Leaving()
  if (holds(job, "Complete")) {
    const pod = pods.find(({ status }) => status?.phase === "Succeeded")
    // The watch of pods may be late. If the pod was deleted, Kubernetes deletes the Job too, and it starts again.
    return pod === undefined ? ObservedReference.Active() : ObservedReference.Ended({ pod: pod.metadata.name, code: null })
  }
  const code = pods.map(causeIn).find((cause) => cause !== null) ?? null
  // Also if the Job would try again: nothing would change.
  if (code !== null) return ObservedReference.Ended({ pod: null, code })
  // Kubernetes deletes a failed Job after some time. Then another run tries again.
  if (holds(job, "Failed")) return ObservedReference.Settled({ code: "not_started" })
  return pods.some(isPlaced) ? ObservedReference.Active() : ObservedReference.Unplaced()
}

/** The phases after the download in which the run may still be tried. */
const filesComplete: ReadonlySet<Phase> = new Set(["waiting", "queued", "provisioning", "booting", "checking"])

/** Whether the run has complete weights, and its trial may still use a reference. */
const needsReference = ({ engineRun, id, phase }: Run, { checks }: RunRevision): boolean => checks === null && engineRun === id && filesComplete.has(phase)

/** Formats of weights that Transformers turns into the exact values on a CPU, and engines do not round further by themselves. */
const computableFormats: ReadonlySet<string> = new Set(["none", "mxfp4"])

/** The stored state of the commit; null if it has no reference and no known cause. */
const settled = Effect.fnUntraced(function* ({ facts }: RunRevision, { attempt }: ReferencePlan) {
  if (!computableFormats.has(facts.config.quantization)) return ObservedReference.Settled({ code: "quantized" })
  const { isKnown, missing } = yield* (yield* Runs).referenceState(attempt)
  return isKnown || missing !== null ? ObservedReference.Settled({ code: isKnown ? null : missing }) : null
})

/** The Job of the plan; null if there is none. */
const readJob = Effect.fnUntraced(function* ({ jobs, namespace, pods }: Cluster, { name }: ReferencePlan) {
  const job = Option.getOrNull(yield* jobs.get(name, namespace))
  return job === null ? null : observeReferenceJob(job, yield* pods.listByLabel(referenceLabel, name))
})

/** How the run's reference is computed on its class; null if it is not. */
const planOf = ({ revision }: Run, podClass: PodClass | null): ReferencePlan | null => {
  const engine = revision === null ? undefined : engineFor(revision.settings.runtime)
  return revision === null || podClass === null || engine === undefined ? null : referencePlan(revision, podClass, engine)
}

/**
 * What the run sees of its Job. The result is kept also after the trial of the run, for the next trial of the commit.
 * `known`: the stored state; null if the commit has no reference and no known cause, and the trial may still use one.
 */
const combine = (job: ObservedReference | null, known: ObservedReference | null): ObservedReference =>
  known === null ? (job ?? ObservedReference.Absent()) : job?._tag === "Ended" ? job : known

/**
 * The reference of the run's commit. Remembers which runs use the same Job: its end concerns all of them, and it is
 * deleted with the last of them.
 */
export const observeReference = Effect.fnUntraced(function* ({ cluster, memory: { references } }: GatherFrom, run: Run, podClass: PodClass | null) {
  const { id, orgSlug, revision } = run
  const plan = planOf(run, podClass)
  if (revision === null || plan === null) {
    yield* references.note(id, null)
    return ObservedReference.Settled({ code: null })
  }
  const needs = needsReference(run, revision)
  const known = needs ? yield* settled(revision, plan) : ObservedReference.Settled({ code: null })
  const isUsed = !endedUnactivated(run.phase) && !run.modelDeleted && !(needs && known !== null)
  yield* references.note(id, isUsed ? { name: plan.name, organization: orgSlug } : null)
  return isUsed ? combine(yield* readJob(cluster, plan), known) : (known ?? ObservedReference.Settled({ code: null }))
})
