import type { MetricFamily } from "@seatrial/domain"

const family = (name: string, type: MetricFamily["type"], labels: ReadonlyArray<string>, unit: string, meaning: string): { readonly family: MetricFamily } => ({
  family: { name, type, labels, unit, meaning }
})

const ofModel = ["model", "class"]

/**
 * Metrics of the gateway. `model` is the callable name, or `other` beyond 100 models. `class` is `owner` if the
 * caller's organization owns the model, else `customer`.
 */
export const gatewayMetrics = {
  requestSeconds: family(
    "seatrial_gateway_request_seconds",
    "histogram",
    ["endpoint", "status"],
    "seconds",
    "From a request's headers to the end of its answer, by endpoint (else other) and the class of the status; gone where the caller left first"
  ),
  inFlight: family("seatrial_gateway_requests_in_flight", "gauge", [], "requests", "Requests that are being answered"),
  refusals: family("seatrial_gateway_refusals_total", "counter", ["code"], "requests", "Requests that were refused before an engine, by the error's code"),
  unrecordedRefusals: family(
    "seatrial_gateway_unrecorded_refusals_total",
    "counter",
    ["code"],
    "requests",
    "Refusals without a record, since there were records enough of the same kind in that minute, by the error's code"
  ),
  outcomes: family(
    "seatrial_gateway_inference_total",
    "counter",
    [...ofModel, "outcome"],
    "requests",
    "Requests that were given to an engine, by how they ended: completed, or the error's code"
  ),
  tokens: family(
    "seatrial_gateway_tokens_total",
    "counter",
    [...ofModel, "kind"],
    "tokens",
    "Tokens of ended requests by class: input, cache_read, cache_write or output"
  ),
  withoutUsage: family(
    "seatrial_gateway_without_usage_total",
    "counter",
    ofModel,
    "requests",
    "Complete answers whose engine told no usage: their record counts what was delivered"
  ),
  clippedUsage: family(
    "seatrial_gateway_clipped_usage_total",
    "counter",
    ofModel,
    "requests",
    "Answers whose engine told of more cached tokens than their prompt has: their record counts the prompt"
  ),
  firstToken: family(
    "seatrial_gateway_first_token_seconds",
    "histogram",
    ofModel,
    "seconds",
    "From a streamed request's first byte to the first content handed to the caller"
  ),
  betweenTokens: family(
    "seatrial_gateway_between_tokens_seconds",
    "histogram",
    ofModel,
    "seconds",
    "Between one content handed to the caller of a stream and the next"
  ),
  queued: family("seatrial_gateway_queued_requests", "gauge", ["model"], "requests", "Requests that wait for a place at an engine"),
  engines: family(
    "seatrial_gateway_engines",
    "gauge",
    ["model", "state"],
    "engines",
    "Engines of a model as this gateway sees them: open, full (by what they say themselves, so that they get nothing more), or ejected (they failed)"
  ),
  waitSeconds: family(
    "seatrial_gateway_wait_seconds",
    "histogram",
    ["model", "for", "outcome"],
    "seconds",
    "How long requests waited that had to, for room at an engine or for the start of one, and how that ended: served, refused, left (by the caller), gone (the model) or stopped (the gateway)"
  ),
  retries: family(
    "seatrial_gateway_retries_total",
    "counter",
    ["model", "reason"],
    "requests",
    "Requests that went out a second time: lost (the connection failed), full (the engine took no more), stale (a kept connection was closed) or cut (the answer had to be asked for shorter)"
  )
}
