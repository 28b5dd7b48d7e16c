import { Action, act, type Decision, fail, wait } from "./Decision.ts"
import type { Observation } from "./Observation.ts"
import { goTo, placement } from "./placement.ts"

const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 3 : 1)} GiB`

/** Brings the weights by a Job. Whether they are there already is for the Job to say: it verifies a complete manifest and ends at once. */
export const materializing = (seen: Observation): Decision => {
  const { fetch, run } = seen
  const size = gib((run.revision?.facts.files ?? []).reduce((sum, file) => sum + file.size, 0))
  switch (fetch._tag) {
    case "Absent":
      return act(`Starts the download of ${size}.`, Action.EnsureFetch())
    case "Active":
      return wait(fetch.problem === null ? `Downloads and verifies ${size}.` : `The download has not started yet (${fetch.problem}).`)
    case "Leaving":
      return wait("Waits for an earlier download to end.")
    case "Failed":
      return fail(fetch.failure.code, fetch.failure.text)
    case "Succeeded": {
      return goTo(placement(seen), Action.RemoveFetch())
    }
  }
}
