import type { NamedFailure } from "@seatrial/domain"
import { readProgress } from "@seatrial/hub"
import { fetchStart } from "../limits.ts"
import { type FetchObstacle, ObservedFetch } from "../observation/ObservedFetch.ts"
import { lastWords } from "./lastWords.ts"
import type { WatchedJob, WatchedPod } from "./watched.ts"

const unexplained: NamedFailure = {
  code: "download_failed",
  text: "The download ended without reporting a cause. Its last output is in the log of Seatrial's operator."
}

/** The pod of a download whose log shows its progress. */
export const fetchingPod = (pods: ReadonlyArray<WatchedPod>): WatchedPod | undefined =>
  pods.find(({ status }) => status?.phase === "Running" && status.containerStatuses?.[0]?.state?.running !== undefined)

/** The longest quotation of the cluster, in characters. */
const length = 300

const sentence = (text: string) => `${text.trim().replace(/\s+/gu, " ").slice(0, length).replace(/\.$/u, "")}.`

const millis = (time: string | null | undefined): number => Date.parse(time ?? "") || 0

const ended = (pod: WatchedPod) => pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded" || pod.metadata.deletionTimestamp !== undefined

/** Maps a time of the cluster to the one from which to count, Unix milliseconds. */
type CountedAs = (time: number) => number

/** Why no pod of the Job runs; null if one does. */
const obstacleOf = (job: WatchedJob, pods: ReadonlyArray<WatchedPod>, countedAs: CountedAs): FetchObstacle | null => {
  if (fetchingPod(pods) !== undefined) return null
  const pod = pods.find((candidate) => !ended(candidate))
  const name = pod?.metadata.name ?? job.metadata.name
  if (pod === undefined) {
    // The Job controller creates a new pod some time after one has failed.
    const after = pods.flatMap(({ metadata, status }) => [
      millis(metadata.creationTimestamp),
      millis(status?.containerStatuses?.[0]?.state?.terminated?.finishedAt)
    ])
    const since = Math.max(millis(job.metadata.creationTimestamp), ...after)
    return {
      says: `the cluster creates no pod for its Job ${name}: a quota or an admission policy may refuse it (kubectl describe job ${name}).`,
      usualUntil: countedAs(since) + fetchStart
    }
  }
  const claims = (pod.spec?.volumes ?? []).flatMap(({ persistentVolumeClaim }) =>
    persistentVolumeClaim === undefined ? [] : [persistentVolumeClaim.claimName]
  )
  const scheduling = pod.status?.conditions?.find(({ type }) => type === "PodScheduled")
  if (scheduling?.status === "False") {
    const why = scheduling.message ?? "no node can take it"
    // The scheduler does not always name the volume.
    const which = /persistentvolume|volume/iu.test(why) && !claims.some((claim) => why.includes(claim)) ? ` Its volume claim is ${claims.join(", ")}.` : ""
    return { says: `its pod ${name} is not scheduled: ${sentence(why)}${which}`, usualUntil: null }
  }
  const waiting = pod.status?.containerStatuses?.[0]?.state?.waiting
  if (waiting?.reason !== undefined && waiting.reason !== "ContainerCreating") {
    return {
      says: `its pod ${name} waits (${waiting.reason}${waiting.message === undefined ? "" : `: ${waiting.message.slice(0, length)}`}).`,
      usualUntil: null
    }
  }
  if (pod.spec?.nodeName === undefined) {
    return {
      says: `its pod ${name} has no node, and the scheduler reports no reason.`,
      usualUntil: countedAs(millis(pod.metadata.creationTimestamp)) + fetchStart
    }
  }
  const mount = claims.length === 0 ? "" : `; its volume claim ${claims.join(", ")} may not mount`
  return {
    says: `the node ${pod.spec.nodeName} has not started the container of its pod ${name} yet${mount} (kubectl describe pod ${name}).`,
    usualUntil: countedAs(Math.max(millis(scheduling?.lastTransitionTime), millis(pod.metadata.creationTimestamp))) + fetchStart
  }
}

/** The latest cause that an attempt reported; null if none has. */
const lastError = (pods: ReadonlyArray<WatchedPod>): NamedFailure | null =>
  pods
    .flatMap((pod) => {
      const status = pod.status?.containerStatuses?.[0]
      const exit = status?.state?.terminated ?? status?.lastState?.terminated
      return exit?.message === undefined ? [] : [{ at: exit.finishedAt ?? "", message: exit.message }]
    })
    .sort((a, b) => (a.at < b.at ? 1 : -1))
    .map(({ message }) => lastWords(message))
    .find((failure) => failure !== null) ?? null

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
  const reported = lastError(pods)
  const holds = (name: string) => job.status?.conditions?.find(({ type, status }) => type === name && status === "True")
  if (holds("Complete") !== undefined) return ObservedFetch.Succeeded()
  const failed = holds("Failed")
  if (failed === undefined) {
    const runsSince = millis(fetchingPod(pods)?.status?.containerStatuses?.[0]?.state?.running?.startedAt)
    return ObservedFetch.Active({
      obstacle: obstacleOf(job, pods, countedAs),
      progress: readProgress(log),
      ...(outdated ? { outdated } : {}),
      ...(runsSince === 0 ? {} : { runsSince: countedAs(runsSince) }),
      ...(reported === null ? {} : { lastFailure: reported })
    })
  }
  const failedAt = millis(failed.lastTransitionTime)
  const endedAt = failedAt === 0 ? null : countedAs(failedAt)
  if (reported !== null) return ObservedFetch.Failed({ failure: reported, endedAt })
  const late = failed.reason === "DeadlineExceeded"
  return ObservedFetch.Failed({ failure: late ? { code: "download_failed", text: "The download did not end within its time limit." } : unexplained, endedAt })
}
