import { Effect, Option, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

/** The `traceparent` header of W3C Trace Context, version 00, for a span. */
export const toTraceparent = ({ sampled, spanId, traceId }: Tracer.AnySpan): string => `00-${traceId.padStart(32, "0")}-${spanId}-${sampled ? "01" : "00"}`

/** The span of a `traceparent`; none if the value is null or malformed. */
export const fromTraceparent = (traceparent: string | null | undefined): Option.Option<Tracer.ExternalSpan> =>
  traceparent === null || traceparent === undefined ? Option.none() : HttpTraceContext.w3c(Headers.fromInput({ traceparent }))

/**
 * The `traceparent` of the current operation: the current span's if traces are exported, otherwise the caller's, which
 * is only passed on. Null if there is neither.
 */
export const currentTraceparent = Effect.fnUntraced(function* (incoming: string | undefined) {
  const tracer = yield* Effect.tracer
  const span = tracer === Tracer.nativeTracer ? Option.none<Tracer.AnySpan>() : yield* Effect.option(Effect.currentParentSpan)
  return Option.getOrNull(
    Option.map(
      Option.orElse(span, () => fromTraceparent(incoming)),
      toTraceparent
    )
  )
})
