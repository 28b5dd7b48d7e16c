import { type Failure, fallsBack, fromTraceparent, isFinished, type Phase } from "@seatrial/domain"
import type { Run } from "@seatrial/store"
import { Clock, Context, Effect, Exit, Option } from "effect"
import { operatorMetrics } from "../metrics.ts"

/**
 * Counts the end of a phase, and records the phase as a span in the trace of the request that created the deployment.
 * The passes have separate traces: the trace of a deployment that serves for months would never end.
 */
export const traceTransition = Effect.fnUntraced(function* ({ id, orgSlug, phase, phaseSince, traceparent }: Run, to: Phase, failure: Failure | null) {
  const now = yield* Clock.currentTimeMillis
  const back = fallsBack(phase, to)
  const outcome = to === "failed" ? "failed" : back ? "requeued" : isFinished(to) && to !== "activated" ? "cancelled" : "passed"
  yield* operatorMetrics.phaseSeconds.update({ phase, outcome }, Math.max(0, now - phaseSince) / 1_000)
  if (failure !== null) yield* operatorMetrics.failures.update({ code: failure.code }, 1)

  const parent = fromTraceparent(traceparent)
  if (Option.isNone(parent)) return
  const tracer = yield* Effect.tracer
  const pass = yield* Effect.option(Effect.currentSpan)
  const span = tracer.span({
    name: `phase ${phase}`,
    parent,
    annotations: Context.empty(),
    links: Option.toArray(Option.map(pass, (led) => ({ span: led, attributes: {} }))),
    startTime: BigInt(Math.min(phaseSince, now)) * 1_000_000n,
    kind: "internal",
    root: false,
    sampled: parent.value.sampled
  })
  span.attribute("seatrial.deployment", id)
  span.attribute("seatrial.organization", orgSlug)
  span.attribute("seatrial.phase", phase)
  span.attribute("seatrial.next", to)
  if (failure !== null) span.attribute("seatrial.failure", failure.code)
  span.end(BigInt(now) * 1_000_000n, Exit.void)
})
