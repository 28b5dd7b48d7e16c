import type { KubeClient, KubeObject } from "@seatrial/kube"
import type { Run } from "@seatrial/store"
import { Effect, Option } from "effect"
import { fetchJob } from "../objects/fetchObjects.ts"
import type { ObservedFetch } from "../observation/ObservedFetch.ts"
import { fetchContainer, fetchJobName, madeFromAnnotation, roleLabel } from "../resources/objectNames.ts"
import { type PodClass, weightsClaimOf } from "../resources/PodClass.ts"
import type { WatchedJob, WatchedPod } from "../resources/watched.ts"
import type { Cluster } from "./Cluster.ts"
import type { GatherSettings } from "./gather.ts"
import { fetchingPod, observeFetch } from "./observeFetch.ts"
import { readProgressLog } from "./readLog.ts"

/** The Job that downloads the run's weights, its pods, and the end of the log of the running one. */
interface Download {
  readonly job: WatchedJob | undefined
  readonly pods: ReadonlyArray<WatchedPod>
  readonly log: string
}

/** Whether an object would be created from another specification now. */
export const isOutdated = (madeFrom: string, wanted: KubeObject | null): boolean =>
  wanted !== null && wanted.metadata.annotations?.[madeFromAnnotation] !== madeFrom

/**
 * Whether the operator would create a different Job now, for example because the address of the hub has changed. A Job
 * without the annotation is never outdated.
 */
const isOldFetch = (job: WatchedJob | undefined, { revision, ...run }: Run, podClass: PodClass | null, settings: GatherSettings): boolean => {
  const madeFrom = job?.metadata.annotations?.[madeFromAnnotation]
  if (madeFrom === undefined || revision === null || podClass === null) return false
  const weightsClaim = weightsClaimOf(podClass, settings)
  return isOutdated(madeFrom, fetchJob({ run: { ...run, revision }, revision, settings, weightsClaim, owner: null }, false))
}

/** Reads the download of the run. `own`: the run's pods. */
export const readDownload = Effect.fnUntraced(function* (
  { jobs, namespace }: Cluster,
  { id, phase }: Run,
  own: ReadonlyArray<WatchedPod>
): Effect.fn.Return<Download, never, KubeClient> {
  const job = Option.getOrUndefined(yield* jobs.get(fetchJobName(id), namespace))
  const pods = own.filter(({ metadata }) => metadata.labels?.[roleLabel] === "fetch")
  const running = phase === "materializing" ? fetchingPod(pods) : undefined
  return { job, pods, log: running === undefined ? "" : yield* readProgressLog(running.metadata.name, namespace, fetchContainer) }
})

/** The state of the download. `countedAs`: maps a time of the cluster to the one from which to count. */
export const observeDownload = (
  { job, log, pods }: Download,
  run: Run,
  podClass: PodClass | null,
  settings: GatherSettings,
  countedAs: (time: number) => number
): ObservedFetch => observeFetch(job, pods, log, isOldFetch(job, run, podClass, settings), countedAs)
