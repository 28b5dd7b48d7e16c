import { type Failure, isFinished, type Phase } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Clock, Effect } from "effect"
import { operatorMetrics } from "../metrics.ts"

/** Counts that a run left its phase. */
export const tellTransition = Effect.fnUntraced(function* ({ phase, phaseSince }: Run, to: Phase, failure: Failure | null) {
  const now = yield* Clock.currentTimeMillis
  const back = to === "queued" && (phase === "provisioning" || phase === "booting")
  const outcome = to === "failed" ? "failed" : back ? "requeued" : isFinished(to) && to !== "activated" ? "cancelled" : "passed"
  yield* operatorMetrics.phaseSeconds.update({ phase, outcome }, Math.max(0, now - phaseSince) / 1_000)
  if (failure !== null) yield* operatorMetrics.failures.update({ code: failure.code }, 1)
})
