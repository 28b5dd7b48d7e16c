import { fromTraceparent } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { engineOf } from "../observation/engines.ts"
import { whichStart } from "../observation/ObservedPod.ts"
import { needsEngine, workAbout } from "../observation/work.ts"
import type { WorkServices } from "../work/startWork.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

/** Keeps exactly the background work of the decision running. It belongs to the trace of the run's request. */
export const keepWork = Effect.fnUntraced(function* (
  { memory, start }: Reconciler,
  { decision: { ordinal = 0, work }, gathered, observation: all, run }: DecidedRun
) {
  const { background } = memory
  if (work === null) return yield* background.want(run.id, null, Effect.void)
  const observation = engineOf(all, ordinal)
  const services = yield* Effect.context<WorkServices>()
  const origin = Option.toArray(fromTraceparent(run.traceparent))
  const begun = Effect.suspend(() => start(gathered, observation, work))
  const traced = origin.reduce((effect, span) => Effect.withParentSpan(effect, span), begun)
  const wanted = { ordinal, kind: work, about: workAbout(observation, work), with: needsEngine(work) ? whichStart(observation.pod) : "" }
  yield* background.want(run.id, wanted, Effect.provideContext(traced, services)).pipe(Effect.annotateLogs({ organization: run.orgSlug, phase: run.phase }))
})
