import type { RunRevision } from "@seatrial/store"
import { backoff, hubDeadline } from "../limits.ts"
import { countedFrom, type Observation } from "../observation/Observation.ts"
import { endedOf } from "../observation/work.ts"
import { by, type Decision, enter, fail, wait } from "./Decision.ts"
import { goTo, placement, withPreface } from "./placement.ts"
import { reuse, reuses } from "./reuse.ts"

/** The next phase of a run whose facts are recorded. */
const proceed = (observation: Observation, revision: RunRevision): Decision => {
  if (reuses(observation)) return by("reuse", reuse(observation))
  const fits = `Commit ${revision.facts.commit.slice(0, 12)} fits ${revision.settings.host_class}`
  if (observation.weights === null) return by("weightsMissing", enter("materializing", `${fits}.`))
  return by("weightsStored", goTo(withPreface(placement(observation), `${fits}, and the weights are available.`)))
}

const failedAttempts = (attempts: number) => `${attempts} ${attempts === 1 ? "attempt" : "attempts"} failed. Retrying.`

/** Reads the repository until its facts are recorded, the model is refused, or the hub is unreachable for too long. */
export const screening = (observation: Observation, now: number): Decision => {
  const { run, work } = observation
  if (run.revision !== null) return proceed(observation, run.revision)
  const ended = endedOf(observation, "screening")
  if (ended?.failure) return by("repositoryRefused", fail(ended.failure.code, ended.failure.text))
  // A run may wait long for a pass and for its turn to read, so only the time between failed attempts counts.
  if (ended === null) return by("readRepository", { ...wait(`Seatrial reads ${run.source.repo}.`), work: "screening" })
  if (ended.at - countedFrom(observation, ended.since ?? run.phaseSince) >= hubDeadline)
    return by("hubUnavailable", fail("hub_unavailable", "The model hub was unavailable for 10 minutes. The model is not at fault; try again later."))
  const message = `${ended.message} ${failedAttempts(ended.attempts)}`
  const next = ended.at + backoff(ended.attempts)
  if (work.running === null && now < next) return by("retryLater", wait(message, next))
  return by("readRepository", { ...wait(message), work: "screening" })
}
