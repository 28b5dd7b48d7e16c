import { toTraceparent } from "@seatrial/domain"
import type { Caller, Route } from "@seatrial/store"
import { Config, Context, Effect, Layer, Tracer } from "effect"
import { elapsed, round } from "../elapsed.ts"
import type { Outcome } from "../Outcome.ts"
import type { Refusal } from "../refusals.ts"
import { AccessLog } from "./AccessLog.ts"
import { inferenceMetrics, type ModelSeries } from "./InferenceMetrics.ts"
import { endSpan, makeStartSpan, traceIdOf, wellFormed } from "./requestSpan.ts"

/** The data of a request that are observed. */
export interface Observed {
  readonly id: string
  readonly endpoint: string
  /** The caller's unchecked `traceparent` header. */
  readonly traceparent: string | undefined
  /** `performance.now()` at the request's first byte. */
  readonly startedAt: number
}

/** The observation of an admitted request. */
export interface Observation {
  readonly series: ModelSeries
  /** The header for the engine: the request's span if traces are exported, else the caller's own. */
  readonly traceparent: string | undefined
  readonly span: Tracer.Span | null
}

export interface Ended {
  readonly caller: Caller
  readonly route: Route
  readonly streamed: boolean
  readonly outcome: Outcome
  /** The refusal that the caller got instead of the outcome; null if it got the outcome. */
  readonly refusal: Refusal | null
  /** `performance.now()` when the first content was sent to the caller. */
  readonly firstContentAt: number | null
}

/** The status and error code that the caller got. The code is null without an error. */
const resultOf = ({ outcome, refusal }: Ended) => ({ status: refusal?.status ?? outcome.status, code: (refusal ?? outcome.error)?.code ?? null })

/** Milliseconds until the first content was sent; null if none was. */
const millisToFirstToken = ({ startedAt }: Observed, { firstContentAt }: Ended): number | null =>
  firstContentAt === null ? null : round(firstContentAt - startedAt)

const countEnd = (series: ModelSeries, { id, startedAt }: Observed, { firstContentAt, outcome: { note, usage } }: Ended, code: string | null): void => {
  series.ended(code ?? "completed", usage)
  if (code === null && note !== null) series.withoutUsage++
  if (usage.clipped) series.clippedUsage++
  if (firstContentAt !== null) series.firstToken.observe((firstContentAt - startedAt) / 1_000, id)
}

const traceEnd = (span: Tracer.Span, request: Observed, ended: Ended): void => {
  const { code, status } = resultOf(ended)
  const { input_tokens, output_tokens } = ended.outcome.usage
  span.attribute("gen_ai.usage.input_tokens", input_tokens)
  span.attribute("gen_ai.usage.output_tokens", output_tokens)
  const millis = millisToFirstToken(request, ended)
  if (millis !== null) span.attribute("seatrial.ttft_ms", millis)
  endSpan(span, status, code)
}

/** Counts, traces and logs requests. Uses plain calls instead of effects, to keep the cost per request negligible. */
export class Observer extends Context.Service<
  Observer,
  {
    readonly begin: (request: Observed, caller: Caller, route: Route) => Observation
    readonly ended: (request: Observed, observation: Observation, ended: Ended) => void
    /** For a request that did not reach an engine. */
    readonly refused: (request: Observed, refusal: Refusal) => void
  }
>()("seatrial/Observer") {
  static readonly layer = Layer.effect(
    Observer,
    Effect.gen(function* () {
      const isLogged = yield* Config.Boolean("GATEWAY_ACCESS_LOG").pipe(Config.withDefault(false))
      const log = isLogged
        ? yield* Effect.acquireRelease(
            Effect.sync(() => new AccessLog(process.stdout)),
            (open) => Effect.sync(() => open.flush())
          )
        : null
      const tracer = yield* Effect.tracer
      const isTraced = tracer !== Tracer.nativeTracer

      const startSpan = makeStartSpan(tracer)

      return Observer.of({
        begin: (request, caller, route) => {
          const series = inferenceMetrics.of(route.model, route.orgId === caller.orgId ? "owner" : "customer")
          if (!isTraced) {
            const { traceparent } = request
            return { series, traceparent: traceparent !== undefined && wellFormed.test(traceparent) ? traceparent : undefined, span: null }
          }
          const span = startSpan(request)
          span.attribute("gen_ai.request.model", route.model)
          span.attribute("seatrial.org_id", caller.orgId)
          return { series, traceparent: toTraceparent(span), span }
        },
        ended: (request, observation, ended) => {
          const { code, status } = resultOf(ended)
          countEnd(observation.series, request, ended, code)
          if (observation.span !== null) traceEnd(observation.span, request, ended)
          const { caller, outcome, route, streamed } = ended
          log?.write({
            request_id: request.id,
            trace_id: traceIdOf(request.traceparent, observation.span),
            endpoint: request.endpoint,
            status,
            code,
            latency_ms: elapsed(request.startedAt),
            org_id: caller.orgId,
            model: route.model,
            streamed,
            ttft_ms: millisToFirstToken(request, ended),
            finish_reason: outcome.finishReason,
            ...outcome.usage
          })
        },
        refused: (request, { code, status }) => {
          inferenceMetrics.refused(code)
          const span = isTraced ? startSpan(request) : null
          if (span !== null) endSpan(span, status, code)
          const { endpoint, traceparent, id, startedAt } = request
          log?.write({ request_id: id, trace_id: traceIdOf(traceparent, span), endpoint, status, code, latency_ms: elapsed(startedAt) })
        }
      })
    })
  )
}
