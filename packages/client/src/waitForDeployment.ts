import { RateLimited, Unavailable } from "@seatrial/api"
import type { DeploymentDetail, DeploymentProgress } from "@seatrial/domain"
import { Clock, Effect, Option, Result } from "effect"
import { Unreachable } from "./failures.ts"
import { minimumPause } from "./retry.ts"

/** A phase of a run and the time of its start. */
export type PhaseEntry = DeploymentDetail["phases"][number]

/** The server is temporarily unavailable. The run continues. */
export type Away = Unreachable | RateLimited | Unavailable

export interface WaitOptions<E = never, R = never> {
  /** Called once per phase in order, including the phases before the call. */
  readonly onPhase?: (entry: PhaseEntry) => Effect.Effect<unknown, E, R>
  /** Called with each change of the run's current activity. A server without this operation is not a failure. */
  readonly onProgress?: (progress: DeploymentProgress) => Effect.Effect<unknown, E, R>
  /** Called for each failed request. Waiting continues. */
  readonly onAway?: (failure: Away) => Effect.Effect<unknown, E, R>
  /** How long the server may be unavailable before waiting fails, in milliseconds; default 10 minutes. */
  readonly patience?: number
}

/** The end of a run. A failure's text is `<code>: <text>`. */
export type Outcome =
  | { readonly outcome: "activated"; readonly deployment: DeploymentDetail }
  | { readonly outcome: "failed"; readonly deployment: DeploymentDetail; readonly failure: string }
  | { readonly outcome: "cancelled"; readonly deployment: DeploymentDetail }

const firstInterval = 250
const longestInterval = 5000

const outcomeOf = (deployment: DeploymentDetail): Outcome | undefined => {
  switch (deployment.status) {
    case "activated":
    case "cancelled":
      return { outcome: deployment.status, deployment }
    case "failed":
      return { outcome: "failed", deployment, failure: deployment.failure_detail ?? "" }
    default:
      return undefined
  }
}

const isAway = (failure: unknown): failure is Away => failure instanceof Unreachable || failure instanceof RateLimited || failure instanceof Unavailable

/**
 * Polls until the run is finished: soon after each new phase, then less often, at most every 5 s. Requests do not
 * overlap.
 */
export const waitUntilFinished = <E, R, E2, R2>(
  detail: Effect.Effect<DeploymentDetail, E | Away, R>,
  progress: Effect.Effect<DeploymentProgress, unknown, R>,
  { onAway, onPhase, onProgress, patience = 600_000 }: WaitOptions<E2, R2>
): Effect.Effect<Outcome, E | Away | E2, R | R2> =>
  Effect.gen(function* () {
    let reportedEntries = 0
    let interval = firstInterval
    let reportedUpdate = ""
    let answeredAt = yield* Clock.currentTimeMillis

    /** Reports the news of an answer. Returns the outcome if the run is finished. */
    const reportNews = Effect.fnUntraced(function* (deployment: DeploymentDetail) {
      const entries = deployment.phases.slice(reportedEntries)
      reportedEntries += entries.length
      if (onPhase !== undefined) for (const entry of entries) yield* onPhase(entry)
      if (entries.length > 0) interval = firstInterval
      return outcomeOf(deployment)
    })

    const reportProgress = Effect.fnUntraced(function* (report: NonNullable<typeof onProgress>) {
      const current = yield* Effect.option(progress)
      if (Option.isNone(current) || current.value.updated_at === reportedUpdate) return
      reportedUpdate = current.value.updated_at
      yield* report(current.value)
    })

    /** The pause before the next request, if the server is only temporarily unavailable. */
    const pauseAfter = Effect.fnUntraced(function* (failure: E | Away) {
      if (!isAway(failure) || (yield* Clock.currentTimeMillis) - answeredAt >= patience) return yield* Effect.fail(failure)
      if (onAway !== undefined) yield* onAway(failure)
      return Math.max(interval, minimumPause(failure) ?? 0)
    })

    for (;;) {
      const result = yield* Effect.result(detail)
      if (Result.isSuccess(result)) {
        answeredAt = yield* Clock.currentTimeMillis
        const outcome = yield* reportNews(result.success)
        if (outcome !== undefined) return outcome
        if (onProgress !== undefined) yield* reportProgress(onProgress)
      }
      yield* Effect.sleep(Result.isSuccess(result) ? interval : yield* pauseAfter(result.failure))
      interval = Math.min(longestInterval, interval * 1.5)
    }
  })
