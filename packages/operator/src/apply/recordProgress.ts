import { isDeepStrictEqual } from "node:util"
import { isFinished, type RunProgress } from "@seatrial/domain"
import { type Run, Runs } from "@seatrial/store"
import { Duration, Effect, Option } from "effect"
import { manyWait, progressPause, statusPauseEach, statusPauseMost } from "../limits.ts"

interface RecordInput {
  /** The run, with the progress that was recorded last. */
  readonly run: Run
  readonly progress: RunProgress
  /** Runs that wait for a pass. */
  readonly backlog: number
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * When the progress may be written, Unix milliseconds: at once for the first time and once the run has ended. Otherwise
 * after a pause that grows with the backlog.
 */
const writableAt = ({ backlog, run }: RecordInput, now: number): number => {
  if (isFinished(run.phase)) return now
  const pause = Math.min(statusPauseMost, Math.max(progressPause, backlog * statusPauseEach))
  if (run.progress === null) return backlog > manyWait ? run.phaseSince + pause : now
  // A time in the future was written before the clock was set back.
  return run.progress.at > now ? now : run.progress.at + pause
}

/**
 * Records for the API what the run does or waits for, if it has changed. Returns the delay until the next attempt if
 * the last write is too recent.
 */
export const recordProgress = Effect.fnUntraced(function* (input: RecordInput) {
  const { now, progress, run } = input
  const { at: _, ...before } = run.progress ?? { at: 0 }
  if (isDeepStrictEqual(before, progress)) return Option.none<Duration.Duration>()
  const pause = writableAt(input, now) - now
  if (pause > 0) return Option.some(Duration.millis(pause))
  yield* (yield* Runs).recordProgress(run.id, run.orgId, progress)
  return Option.none<Duration.Duration>()
})
