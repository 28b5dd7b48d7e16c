import { Context, Exit, Option, Tracer } from "effect"
import type { Observed } from "./Observer.ts"

/** A valid `traceparent` header. */
export const wellFormed = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/

const nanos = (at: number) => BigInt(Math.round((performance.timeOrigin + at) * 1_000)) * 1_000n

/** Starts the span of a request, as a child of the caller's span if there is one. */
export const makeStartSpan =
  (tracer: Tracer.Tracer) =>
  ({ endpoint, traceparent, id, startedAt }: Observed) => {
    const [, traceId, spanId, flags] = traceparent === undefined ? [] : (wellFormed.exec(traceparent) ?? [])
    const parent =
      traceId === undefined || spanId === undefined
        ? Option.none<Tracer.AnySpan>()
        : Option.some(Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags ?? "0", 16) & 1) === 1 }))
    const span = tracer.span({
      name: `POST ${endpoint}`,
      parent,
      annotations: Context.empty(),
      links: [],
      startTime: nanos(startedAt),
      kind: "server",
      root: Option.isNone(parent),
      sampled: Option.match(parent, { onNone: () => true, onSome: ({ sampled }) => sampled })
    })
    span.attribute("seatrial.request_id", id)
    span.attribute("url.path", endpoint)
    return span
  }

export const endSpan = (span: Tracer.Span, status: number, code: string | null) => {
  span.attribute("http.response.status_code", status)
  if (code !== null) span.attribute("error.type", code)
  span.end(nanos(performance.now()), status >= 500 ? Exit.fail(code) : Exit.void)
}
/** The trace ID of the request; undefined if it has no trace. */
export const traceIdOf = (traceparent: string | undefined, span: Tracer.Span | null) =>
  span?.traceId ?? (traceparent === undefined ? undefined : wellFormed.exec(traceparent)?.[1])
