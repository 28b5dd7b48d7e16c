import { fromTraceparent } from "@seatrial/domain"
import { Effect, Option } from "effect"
import { worksOf } from "../decide/Decision.ts"
import { engineOf } from "../observation/engines.ts"
import { whichStart } from "../observation/ObservedPod.ts"
import { needsEngine, workAbout } from "../observation/work.ts"
import type { WorkServices } from "../work/startWork.ts"
import type { DecidedRun } from "./decideRun.ts"
import type { Reconciler } from "./Reconciler.ts"

/** Keeps exactly the background work of the decision running. It belongs to the trace of the run's request. */
export const keepWork = Effect.fnUntraced(function* ({ memory, start }: Reconciler, { decision, gathered, observation: all, run }: DecidedRun) {
  const services = yield* Effect.context<WorkServices>()
  const origin = Option.toArray(fromTraceparent(run.traceparent))
  const works = worksOf(decision).map(({ kind, ordinal }) => {
    const observation = engineOf(all, ordinal)
    const begun = Effect.suspend(() => start(gathered, observation, kind))
    const traced = origin.reduce((effect, span) => Effect.withParentSpan(effect, span), begun)
    const about = workAbout(observation, kind)
    return { ordinal, kind, about, with: needsEngine(kind) ? whichStart(observation.pod) : "", start: Effect.provideContext(traced, services) }
  })
  yield* memory.background.want(run.id, works).pipe(Effect.annotateLogs({ organization: run.orgSlug, phase: run.phase }))
})
