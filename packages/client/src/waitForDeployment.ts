import { RateLimited, Unavailable } from "@seatrial/api"
import type { DeploymentDetail, DeploymentProgress } from "@seatrial/domain"
import { Clock, Effect, Option, Result } from "effect"
import { Unreachable } from "./failures.ts"
import { minimumPause } from "./retry.ts"

/** A phase of a run, and when it was entered. */
export type PhaseEntry = DeploymentDetail["phases"][number]

/** A server that cannot answer now; what it is asked about goes on meanwhile. */
export type Away = Unreachable | RateLimited | Unavailable

export interface WaitOptions<E = never, R = never> {
  /** Called once for each phase, in order, those before the call included. */
  readonly onPhase?: (entry: PhaseEntry) => Effect.Effect<unknown, E, R>
  /** Called with what the run does or waits for, each time that this changes. A server that does not give it is no failure. */
  readonly onProgress?: (progress: DeploymentProgress) => Effect.Effect<unknown, E, R>
  /** Called when the server cannot be asked; waiting goes on. */
  readonly onAway?: (failure: Away) => Effect.Effect<unknown, E, R>
  /** How long the server may stay away until waiting ends with that failure, in milliseconds; default 10 minutes. */
  readonly patience?: number
}

/** How a run ended. A failure's text is `<code>: <text>`. */
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

/** Asks until the run is finished: soon after each new phase, then ever more rarely, every 5 s at the most. Nothing is asked twice at once. */
export const waitUntilFinished = <E, R, E2, R2>(
  detail: Effect.Effect<DeploymentDetail, E | Away, R>,
  progress: Effect.Effect<DeploymentProgress, unknown, R>,
  { onAway, onPhase, onProgress, patience = 600_000 }: WaitOptions<E2, R2>
): Effect.Effect<Outcome, E | Away | E2, R | R2> =>
  Effect.gen(function* () {
    let told = 0
    let interval = firstInterval
    let shown = ""
    let answered = yield* Clock.currentTimeMillis
    for (;;) {
      const asked = yield* Effect.result(detail)
      let pause = interval
      if (Result.isSuccess(asked)) {
        answered = yield* Clock.currentTimeMillis
        const entries = asked.success.phases.slice(told)
        if (onPhase !== undefined) for (const entry of entries) yield* onPhase(entry)
        told += entries.length
        const outcome = outcomeOf(asked.success)
        if (outcome !== undefined) return outcome
        if (onProgress !== undefined) {
          const current = yield* Effect.option(progress)
          if (Option.isSome(current) && current.value.updated_at !== shown) {
            shown = current.value.updated_at
            yield* onProgress(current.value)
          }
        }
        if (entries.length > 0) interval = firstInterval
        pause = interval
      } else {
        const { failure } = asked
        if (!isAway(failure) || (yield* Clock.currentTimeMillis) - answered >= patience) return yield* Effect.fail(failure)
        if (onAway !== undefined) yield* onAway(failure)
        pause = Math.max(interval, minimumPause(failure) ?? 0)
      }
      yield* Effect.sleep(pause)
      interval = Math.min(longestInterval, interval * 1.5)
    }
  })
