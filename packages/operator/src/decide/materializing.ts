import { sizeInWords } from "@seatrial/domain"
import type { DownloadState } from "@seatrial/hub"
import { fetchInterval, fetchStart, refusalDeadline } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import { ObservedFetch } from "../observation/ObservedFetch.ts"
import { weightsSize } from "../resources/weightFiles.ts"
import { classMissing } from "./classMissing.ts"
import { Action, act, by, type Decision, fail, wait } from "./Decision.ts"
import { describeProgress, describeStall } from "./describeProgress.ts"
import { goTo, placement } from "./placement.ts"

/** A sentence about the progress of the download. */
const describe = (size: string, progress: DownloadState | null): string => {
  if (progress === null) return `Seatrial downloads and verifies ${size}.`
  if (progress.waiting) return "The deployment waits for another download of the same files."
  const { stalledSeconds } = progress
  if (stalledSeconds !== null) return `The download stalled: ${describeStall(progress, stalledSeconds)} Seatrial retries over new connections.`
  return `Seatrial downloads and verifies the weights: ${describeProgress(progress)}`
}

const sizeOf = ({ run }: Observation): string => sizeInWords(run.revision === null ? 0 : weightsSize(run.revision))

type ActiveFetch = Extract<ObservedFetch, { readonly _tag: "Active" }>

/** Why the cluster does not start the download's pod; null if it does, or if a normal start may take that long. */
const lastingObstacle = ({ obstacle }: ActiveFetch, now: number): ActiveFetch["obstacle"] =>
  obstacle !== null && (obstacle.usualUntil === null || now >= obstacle.usualUntil) ? obstacle : null

/**
 * Why the download does not run, once it takes longer than a normal start, or why its last attempt failed. Null if it
 * runs or may still start.
 */
export const describeObstacle = (fetch: ObservedFetch, now: number): string | null => {
  if (fetch._tag !== "Active") return null
  const { lastFailure, progress, runsSince } = fetch
  const obstacle = lastingObstacle(fetch, now)
  if (obstacle !== null) return `The download cannot start. ${obstacle.message}`
  if (progress !== null) return null
  if (lastFailure !== undefined) return `Seatrial retries the download. The previous attempt failed with ${lastFailure.code}: ${lastFailure.text}`
  if (runsSince === undefined || now < runsSince + fetchStart) return null
  return "The download has reported nothing since its start. The hub may not respond at its address (HF_ENDPOINT). Seatrial retries for some minutes."
}

/** A sentence about the progress of a running download, or about its obstacle. */
export const describeDownload = (observation: Observation, fetch: ActiveFetch, now: number): string =>
  describeObstacle(fetch, now) ?? describe(sizeOf(observation), fetch.progress)

/**
 * Waits for a running download. What the cluster reports about a pending pod is shown only to the cluster
 * administrator. `before`: a sentence to put first.
 */
export const waitForDownload = (observation: Observation, fetch: ActiveFetch, now: number, before = ""): Decision => {
  const message = describeDownload(observation, fetch, now)
  const isBlocked = lastingObstacle(fetch, now) !== null
  const publicMessage = isBlocked ? `${before}The download cannot start, because the cluster does not start its pod.` : undefined
  return by("awaitDownload", wait(`${before}${message}`, now + fetchInterval, publicMessage))
}

/**
 * A download with outdated settings, for example an old address of the hub, may never succeed. A new Job replaces it
 * and continues with the files that it left.
 */
export const replaceFetch: Decision = by(
  "downloadOutdated",
  act("The settings of the download have changed since its start. The download restarts and keeps the files that it has.", Action.RemoveFetch())
)

/**
 * Fails the run if the cluster has created no pod for the download for too long: something refuses it. Otherwise null.
 */
const refusedPod = (observation: Observation, { obstacle }: ActiveFetch, now: number): Decision | null => {
  if (obstacle?.podMissingSince === undefined || now < countedFrom(observation, obstacle.podMissingSince) + refusalDeadline) return null
  return by(
    "downloadRefused",
    fail(
      "download_failed",
      `The cluster created no pod for the download within ${refusalDeadline / 60_000} minutes. A ResourceQuota, a LimitRange or an admission policy may not allow the pod, or an admission webhook does not answer. The events of the Job name the cause. Ask the cluster administrator to remove the cause, then deploy again.`
    )
  )
}

/** Downloads the weights with a Job, unless an earlier run has recorded that it verified them. */
export const materializing = (observation: Observation, now: number): Decision => {
  const { fetch } = observation
  const size = sizeOf(observation)
  switch (fetch._tag) {
    case "Absent":
      // The host class determines the store of the weights.
      if (observation.podClass === null) return classMissing(observation)
      if (observation.weights !== null) return by("weightsStored", goTo(placement(observation)))
      return by("startDownload", act(`Seatrial starts the download of ${size}.`, Action.EnsureFetch()))
    case "Active":
      return fetch.outdated === true ? replaceFetch : (refusedPod(observation, fetch, now) ?? waitForDownload(observation, fetch, now))
    case "Leaving":
      return by("downloadLeaving", wait("The deployment waits for an earlier download to end."))
    case "Failed":
      return by("downloadFailed", fail(fetch.failure.code, fetch.failure.text))
    case "Succeeded":
      if (observation.podClass === null) return classMissing(observation)
      return by("downloaded", goTo(placement(observation), Action.NoteWeights(), Action.RemoveFetch()))
  }
}

const startRedownload = (observation: Observation): Decision =>
  by(
    "startDownload",
    act(
      `The engine did not start. Seatrial checks whether all ${sizeOf(observation)} of its weights are still in the store.`,
      ...(observation.weights === null ? [] : [Action.ForgetWeights()]),
      Action.EnsureFetch()
    )
  )

const restartEngine = ({ pod }: Observation): Decision =>
  by(
    "downloaded",
    act(
      "The weights are complete. Seatrial starts the engine again.",
      ...(pod === null ? [] : [Action.RemovePod({ uid: pod.uid, force: pod.lost !== null })]),
      Action.NoteWeights(),
      Action.RemoveFetch()
    )
  )

/** Whether this run downloaded its weights itself. */
const hasOwnDownload = ({ run, weights }: Observation): boolean => weights?.own === true || run.history.some(({ phase }) => phase === "materializing")

/**
 * Downloads the weights again if an engine did not start with weights that an earlier run downloaded: the store may
 * have lost them. The download checks them and fetches the missing ones before the engine starts again. Null if the
 * run's own download fetched them.
 */
export const redownloadWeights = (observation: Observation, now: number): Decision | null => {
  const isOwn = hasOwnDownload(observation)
  const lacksClass = observation.podClass === null && !isOwn
  return ObservedFetch.$match(observation.fetch, {
    Absent: () => (lacksClass ? classMissing(observation) : isOwn ? null : startRedownload(observation)),
    Active: (fetch) => waitForDownload(observation, fetch, now),
    Leaving: () => (isOwn ? null : by("downloadLeaving", wait("The deployment waits for an earlier download to end."))),
    Failed: ({ failure }) => by("downloadFailed", fail(failure.code, failure.text)),
    Succeeded: () => (lacksClass ? classMissing(observation) : restartEngine(observation))
  })
}
