import type { NamedFailure } from "@seatrial/domain"
import { readProgress } from "@seatrial/hub"
import { fetchStart } from "../limits.ts"
import { type FetchObstacle, ObservedFetch } from "../observation/ObservedFetch.ts"
import { fetchContainer } from "../resources/objectNames.ts"
import type { WatchedJob, WatchedPod } from "../resources/watched.ts"
import { lastWords } from "./lastWords.ts"
import { conditionOf, hasEnded, lastExit, mainContainer, millisOf } from "./podStatus.ts"
import { foreignInitContainers, sidecars } from "./sidecars.ts"

const unexplained: NamedFailure = {
  code: "download_failed",
  text: "The download ended without reporting a cause. Its last output is in the log of Seatrial's operator."
}

const exceeded: NamedFailure = {
  code: "download_failed",
  text: "The download did not end within its time limit. Deploy again: files that arrived are kept. If the download is slow, ask the cluster administrator to raise OPERATOR_FETCH_SECONDS."
}

/** The pod of a download whose log shows its progress. */
export const fetchingPod = (pods: ReadonlyArray<WatchedPod>): WatchedPod | undefined =>
  pods.find((pod) => pod.status?.phase === "Running" && mainContainer(pod)?.state?.running !== undefined)

/** When the download in the pod started. */
const startOf = (pod: WatchedPod | undefined) => (pod === undefined ? undefined : mainContainer(pod)?.state?.running?.startedAt)

/** The longest quotation of the cluster, in characters. */
const length = 300

const sentence = (text: string) => `${text.trim().replace(/\s+/gu, " ").slice(0, length).replace(/\.$/u, "")}.`

const isOver = (pod: WatchedPod) => hasEnded(pod) || pod.metadata.deletionTimestamp !== undefined

/** Maps a time of the cluster to the one from which to count, Unix milliseconds. */
type CountedAs = (time: number) => number

/** The latest of these times; 0 if there is none. */
const latest = (...times: ReadonlyArray<string | null | undefined>): number => Math.max(0, ...times.map((time) => millisOf(time) ?? 0))

/** The Job controller creates a new pod some time after one has failed. */
const withoutPod = ({ metadata }: WatchedJob, pods: ReadonlyArray<WatchedPod>, countedAs: CountedAs): FetchObstacle => {
  const { name } = metadata
  const changes = pods.flatMap((pod) => [pod.metadata.creationTimestamp, mainContainer(pod)?.state?.terminated?.finishedAt])
  const podMissingSince = countedAs(latest(metadata.creationTimestamp, ...changes))
  return {
    message: `The cluster creates no pod for the Job ${name}. A quota or an admission policy may refuse the pod (kubectl describe job ${name}).`,
    usualUntil: podMissingSince + fetchStart,
    podMissingSince
  }
}

const claimsOf = ({ spec }: WatchedPod): ReadonlyArray<string> =>
  (spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) => (persistentVolumeClaim === undefined ? [] : [persistentVolumeClaim.claimName]))

/** The scheduler finds no node for the pod. It does not always name the volume. */
const unscheduled = (pod: WatchedPod): FetchObstacle | null => {
  const scheduling = conditionOf(pod, "PodScheduled")
  if (scheduling?.status !== "False") return null
  const claims = claimsOf(pod)
  const why = scheduling.message ?? "no node can take it"
  const isUnnamed = /persistentvolume|volume/iu.test(why) && !claims.some((claim) => why.includes(claim))
  const claim = isUnnamed ? ` The pod's volume claim is ${claims.join(", ")}.` : ""
  return { message: `The pod ${pod.metadata.name} is not scheduled: ${sentence(why)}${claim}`, usualUntil: null }
}

/** Waiting reasons during a normal start. */
const usualWaits = new Set(["ContainerCreating", "PodInitializing"])

/** The node cannot start the container, or a container that something else added to the pod. */
const containerWaits = (pod: WatchedPod): FetchObstacle | null => {
  const container = [mainContainer(pod), ...foreignInitContainers(pod), ...sidecars(pod)].find(
    (candidate) => candidate?.state?.waiting?.reason !== undefined && !usualWaits.has(candidate.state.waiting.reason)
  )
  const { message, reason } = container?.state?.waiting ?? {}
  if (container === undefined || reason === undefined) return null
  const detail = message === undefined ? "" : `: ${message.slice(0, length)}`
  const whose = container.name === fetchContainer ? "" : ` for the container ${container.name}, which the cluster added`
  return { message: `The pod ${pod.metadata.name} waits${whose} (${reason}${detail}).`, usualUntil: null }
}

/** The pod has no node yet, or its node has not started the container yet. */
const notStarted = (pod: WatchedPod, countedAs: CountedAs): FetchObstacle => {
  const { creationTimestamp, name } = pod.metadata
  if (pod.spec?.nodeName === undefined)
    return { message: `The pod ${name} has no node, and the scheduler reports no reason.`, usualUntil: countedAs(latest(creationTimestamp)) + fetchStart }
  const claims = claimsOf(pod)
  const mount =
    claims.length === 0
      ? ""
      : `. A possible cause is that ${claims.length === 1 ? "the volume claim" : "one of the volume claims"} ${claims.join(", ")} cannot be mounted`
  return {
    message: `The node ${pod.spec.nodeName} has not started the container of the pod ${name} yet${mount} (kubectl describe pod ${name}).`,
    usualUntil: countedAs(latest(conditionOf(pod, "PodScheduled")?.lastTransitionTime, creationTimestamp)) + fetchStart
  }
}

/** Why no pod of the Job runs; null if one does. */
const obstacleOf = (job: WatchedJob, pods: ReadonlyArray<WatchedPod>, countedAs: CountedAs): FetchObstacle | null => {
  if (fetchingPod(pods) !== undefined) return null
  const pod = pods.find((candidate) => !isOver(candidate))
  if (pod === undefined) return withoutPod(job, pods, countedAs)
  return unscheduled(pod) ?? containerWaits(pod) ?? notStarted(pod, countedAs)
}

/** The latest cause that an attempt reported; null if none has. */
const lastError = (pods: ReadonlyArray<WatchedPod>): NamedFailure | null =>
  pods
    .flatMap((pod) => {
      const exit = lastExit(mainContainer(pod))
      return exit?.message === undefined ? [] : [{ at: exit.finishedAt ?? "", message: exit.message }]
    })
    .sort((a, b) => (a.at < b.at ? 1 : -1))
    .map(({ message }) => lastWords(message))
    .find((failure) => failure !== null) ?? null

/**
 * How the download ended in a pod that another container keeps running; undefined if there is no such pod. The Job
 * would never end by itself: it ends with its pod.
 */
const endInRunningPod = (pods: ReadonlyArray<WatchedPod>) =>
  pods
    .filter((pod) => pod.status?.phase === "Running" && pod.metadata.deletionTimestamp === undefined)
    .filter((pod) => pod.status?.containerStatuses?.some(({ name, state }) => name !== fetchContainer && state?.running !== undefined) === true)
    .map((pod) => mainContainer(pod)?.state?.terminated)
    .find((exit) => exit !== undefined)

/** How a Job reports that the download ended; null while it is active. */
const observeEnd = (job: WatchedJob, pods: ReadonlyArray<WatchedPod>, countedAs: CountedAs): ObservedFetch | null => {
  const holds = (name: string) => job.status?.conditions?.find(({ type, status }) => type === name && status === "True")
  const exit = endInRunningPod(pods)
  if (holds("Complete") !== undefined || exit?.exitCode === 0) return ObservedFetch.Succeeded()
  const failure = lastError(pods) ?? unexplained
  if (exit !== undefined) return ObservedFetch.Failed({ failure, endedAt: millisOf(exit.finishedAt) })
  const failed = holds("Failed")
  if (failed === undefined) return null
  const failedAt = latest(failed.lastTransitionTime)
  const isLate = failure === unexplained && failed.reason === "DeadlineExceeded"
  return ObservedFetch.Failed({ failure: isLate ? exceeded : failure, endedAt: failedAt === 0 ? null : countedAs(failedAt) })
}

/**
 * The state of the download Job. `pods`: the Job's pods. `log`: the end of the running pod's log. `outdated`: the
 * operator would create a different Job now.
 */
export const observeFetch = (
  job: WatchedJob | undefined,
  pods: ReadonlyArray<WatchedPod>,
  log = "",
  outdated = false,
  countedAs: CountedAs = (time) => time
): ObservedFetch => {
  if (job === undefined) return ObservedFetch.Absent()
  if (job.metadata.deletionTimestamp !== undefined) return ObservedFetch.Leaving()
  const end = observeEnd(job, pods, countedAs)
  if (end !== null) return end
  const reported = lastError(pods)
  const runsSince = latest(startOf(fetchingPod(pods)))
  return ObservedFetch.Active({
    obstacle: obstacleOf(job, pods, countedAs),
    progress: readProgress(log),
    ...(outdated ? { outdated } : {}),
    ...(runsSince === 0 ? {} : { runsSince: countedAs(runsSince) }),
    ...(reported === null ? {} : { lastFailure: reported })
  })
}
