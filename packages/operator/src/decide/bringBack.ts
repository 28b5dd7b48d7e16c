import { fetchAgain } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import { ObservedFetch } from "../observation/ObservedFetch.ts"
import { Action, act, by, type Decision, wait } from "./Decision.ts"
import { replaceFetch, waitForDownload } from "./materializing.ts"

/**
 * Whether the engine cannot restart because its weights are missing from the store or differ from the verified ones.
 */
export const lostWeights = ({ pod, podClass }: Observation): boolean => {
  const copy = pod?.copy ?? null
  // Without its host class the store is unknown. While a check runs again, the previous result holds.
  if (podClass === null || copy === null || copy.done || copy.failure === null) return false
  return copy.failure.code === "weights_missing" || (copy.checks === true && copy.failure.code === "weights_mismatch")
}

type FailedFetch = Extract<ObservedFetch, { readonly _tag: "Failed" }>

/** Retries a failed download after a pause. */
const retryDownload = (lost: string, { endedAt, failure }: FailedFetch, now: number): Decision => {
  const again = (endedAt ?? now) + fetchAgain
  const message = `${lost} The weights could not be downloaded: ${failure.text}`
  return now < again
    ? wait(`${message} Seatrial retries the download later.`, again)
    : act(`${message} Seatrial retries the download now.`, Action.RemoveFetch())
}

/**
 * Downloads the weights of the serving revision again if its store has lost or changed them. Its engine waits for them,
 * and no one else deploys the model again. Null if the engine does not wait for its weights.
 */
export const bringBack = (observation: Observation, now: number): Decision | null => {
  const { fetch, pod, weights } = observation
  const failure = lostWeights(observation) ? (pod?.copy?.failure ?? null) : null
  if (pod === null || failure === null) return null
  const lost = `The engine cannot use its weights: ${failure.text}`
  return ObservedFetch.$match(fetch, {
    Absent: () =>
      by("startDownload", act(`${lost} Seatrial downloads the weights again.`, ...(weights === null ? [] : [Action.ForgetWeights()]), Action.EnsureFetch())),
    Active: (active) => (active.outdated === true ? replaceFetch : waitForDownload(observation, active, now, `${lost} `)),
    Leaving: () => by("downloadLeaving", wait(`${lost} The engine waits for an earlier download to end.`)),
    Failed: (failed) => by("downloadFailed", retryDownload(lost, failed, now)),
    Succeeded: () =>
      by(
        "downloaded",
        act(
          "The weights are available again. Seatrial restarts the engine.",
          Action.RemovePod({ uid: pod.uid, force: false }),
          Action.NoteWeights(),
          Action.RemoveFetch()
        )
      )
  })
}
