import { Effect, Option, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

/** A span as the header `traceparent` of W3C Trace Context, version 00. */
export const toTraceparent = ({ sampled, spanId, traceId }: Tracer.AnySpan): string => `00-${traceId.padStart(32, "0")}-${spanId}-${sampled ? "01" : "00"}`

/** The span that a `traceparent` names; none for what is not a well-formed one, or for null. */
export const fromTraceparent = (traceparent: string | null | undefined): Option.Option<Tracer.ExternalSpan> =>
  traceparent === null || traceparent === undefined ? Option.none() : HttpTraceContext.w3c(Headers.fromInput({ traceparent }))

/**
 * The `traceparent` of what is going on: of the current span where traces are exported, else the caller's own, which is then only passed on. Null where there is
 * neither.
 */
export const currentTraceparent = Effect.fnUntraced(function* (given: string | undefined) {
  const tracer = yield* Effect.tracer
  const span = tracer === Tracer.nativeTracer ? Option.none<Tracer.AnySpan>() : yield* Effect.option(Effect.currentParentSpan)
  return Option.getOrNull(
    Option.map(
      Option.orElse(span, () => fromTraceparent(given)),
      toTraceparent
    )
  )
})
