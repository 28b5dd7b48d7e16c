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
    "Time from a request's headers to the end of its answer, by endpoint (or other) and class of the status; the status is `gone` if the caller disconnected first"
  ),
  inFlight: family("seatrial_gateway_requests_in_flight", "gauge", [], "requests", "Requests in progress"),
  refusals: family(
    "seatrial_gateway_refusals_total",
    "counter",
    ["code"],
    "requests",
    "Requests that were refused before they reached an engine, by error code"
  ),
  unrecordedRefusals: family(
    "seatrial_gateway_unrecorded_refusals_total",
    "counter",
    ["code"],
    "requests",
    "Refusals without a record, because enough of the same kind were recorded in that minute, by error code"
  ),
  outcomes: family(
    "seatrial_gateway_inference_total",
    "counter",
    [...ofModel, "outcome"],
    "requests",
    "Requests that were sent to an engine, by outcome: completed, or the error code"
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
    "Complete answers whose engine reported no usage: the record counts the delivered tokens"
  ),
  clippedUsage: family(
    "seatrial_gateway_clipped_usage_total",
    "counter",
    ofModel,
    "requests",
    "Answers whose engine reported more cached tokens than the prompt has: the record counts the tokens of the prompt"
  ),
  firstToken: family(
    "seatrial_gateway_first_token_seconds",
    "histogram",
    ofModel,
    "seconds",
    "Time from the first byte of a streamed request to the first content sent to the caller"
  ),
  betweenTokens: family(
    "seatrial_gateway_between_tokens_seconds",
    "histogram",
    ofModel,
    "seconds",
    "Time between two consecutive pieces of content in a stream"
  ),
  running: family(
    "seatrial_gateway_running_requests",
    "gauge",
    ["model"],
    "answers",
    "Answers that engines of a model write, or whose record is not written yet; a request with `n` counts n times"
  ),
  queued: family("seatrial_gateway_queued_requests", "gauge", ["model"], "requests", "Requests that wait for a slot at an engine"),
  engines: family(
    "seatrial_gateway_engines",
    "gauge",
    ["model", "state"],
    "engines",
    "Engines of a model by their state in this gateway: open, full (according to their own metrics) or ejected (they failed)"
  ),
  waitSeconds: family(
    "seatrial_gateway_wait_seconds",
    "histogram",
    ["model", "for", "outcome"],
    "seconds",
    "Waiting time of requests that had to wait, for room at an engine or for the start of one, by outcome: served, refused, left (the caller disconnected), gone (the model was deleted) or stopped (the gateway stopped)"
  ),
  retries: family(
    "seatrial_gateway_retries_total",
    "counter",
    ["model", "reason"],
    "requests",
    "Requests that were sent a second time: lost (the connection failed), full (the engine had no room), stale (a kept connection was closed) or cut (the token limit was lowered)"
  )
}
