import { type DownloadProgress, phaseTraits, type QueueProgress, type RunProgress } from "@seatrial/domain"
import { leastAhead } from "../decide/placement.ts"
import type { Observation } from "../observation/Observation.ts"
import type { ObservedFetch } from "../observation/ObservedFetch.ts"

type Observed = Pick<Observation, "ahead" | "fetch" | "funding" | "options" | "podClass" | "run">

const queueOf = ({ ahead, funding, options, podClass, run }: Observed): QueueProgress | null => {
  if (funding !== null && phaseTraits[run.phase].awaitsGpus) return { waits_for: "organization_limit", place: null }
  if (run.phase === "waiting") return { waits_for: run.olderRun === null ? "organization_limit" : "older_run", place: null }
  if (run.phase !== "queued") return null
  if (podClass === null && options.length === 0) return { waits_for: "host_class", place: null }
  return { waits_for: "capacity", place: leastAhead({ ahead, options }) + 1 }
}

const downloadOf = (fetch: ObservedFetch): DownloadProgress | null => {
  if (fetch._tag !== "Active" || fetch.progress === null || fetch.progress.waiting) return null
  const { bytes, bytesPerSecond, secondsLeft, stalledSeconds, totalBytes } = fetch.progress
  return { bytes, total_bytes: totalBytes, bytes_per_second: bytesPerSecond, seconds_left: secondsLeft, stalled: stalledSeconds !== null }
}

/** The longest message that is stored, in characters. */
const messageLength = 2_000

/** The text as Postgres returns it, so that it compares equal after a write. */
const storable = (text: string): string => text.replaceAll("\0", "").slice(0, messageLength).toWellFormed()

/** What a run does or waits for, as its custom resource and the API show it. `message`: from the decision. */
export const progressOf = (observation: Observed, message: string): RunProgress => ({
  phase: observation.run.phase,
  message: storable(message),
  queue: queueOf(observation),
  download: observation.run.phase === "materializing" ? downloadOf(observation.fetch) : null
})
