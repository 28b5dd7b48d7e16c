import { type DeploymentId, endedUnactivated, type Failure, fallsBack, fromTraceparent, type Phase } from "@seatrial/domain"
import { Context, Effect, Exit, Option } from "effect"
import { storeMetrics } from "../metrics.ts"

/** A run that moved, with the phase that it left. */
export interface MovedRun {
  readonly id: DeploymentId
  readonly orgSlug: string
  /** The trace context of the request that created the run. */
  readonly traceparent: string | null
  readonly from: Phase
  /** When that phase began and ended. */
  readonly since: Date
  readonly until: Date
}

const outcomeOf = (from: Phase, to: Phase): string => (endedUnactivated(to) ? to : fallsBack(from, to) ? "requeued" : "passed")

/**
 * Counts the end of a phase, and records the phase as a span in the trace of the request that created the deployment.
 * The writers have separate traces: the trace of a deployment that serves for months would never end.
 */
export const traceTransition = Effect.fnUntraced(function* (run: MovedRun, to: Phase, failure: Failure | undefined) {
  const { from, id, orgSlug, since, traceparent, until } = run
  yield* storeMetrics.phaseSeconds.update({ phase: from, outcome: outcomeOf(from, to) }, Math.max(0, until.getTime() - since.getTime()) / 1_000)

  const parent = fromTraceparent(traceparent)
  if (Option.isNone(parent)) return
  const tracer = yield* Effect.tracer
  const writer = yield* Effect.option(Effect.currentSpan)
  const span = tracer.span({
    name: `phase ${from}`,
    parent,
    annotations: Context.empty(),
    links: Option.toArray(Option.map(writer, (led) => ({ span: led, attributes: {} }))),
    startTime: BigInt(since.getTime()) * 1_000_000n,
    kind: "internal",
    root: false,
    sampled: parent.value.sampled
  })
  span.attribute("seatrial.deployment", id)
  span.attribute("seatrial.organization", orgSlug)
  span.attribute("seatrial.phase", from)
  span.attribute("seatrial.next", to)
  if (failure !== undefined) span.attribute("seatrial.failure", failure.code)
  span.end(BigInt(until.getTime()) * 1_000_000n, Exit.void)
})
