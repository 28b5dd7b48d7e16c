import { Schema } from "effect"

/** Latencies of one kind of request, in milliseconds. */
export const Latencies = Schema.Struct({ count: Schema.Int, p50: Schema.Finite, p99: Schema.Finite })

/** What the honest client measured for some seconds. */
export const HonestReport = Schema.Struct({
  /** Requests for inference: short and long bodies, streamed and whole, on kept and on new connections. From the planned start to the last byte. */
  requests: Latencies,
  whole: Latencies,
  streamed: Latencies,
  /** Requests with a body of 128 KiB. */
  large: Latencies,
  /** The health endpoints of the gateway. */
  health: Latencies,
  /** An idle server in another process, asked at the same times: how busy the machine is. */
  idle: Latencies,
  /** Each request that did not end with its complete answer. */
  errors: Schema.Array(Schema.String)
})
export type HonestReport = typeof HonestReport.Type

/** What the client does for so many milliseconds: `perSecond` requests a second, and a look at the health endpoints for each tenth of a second. */
export const Measurement = Schema.Struct({
  addresses: Schema.Array(Schema.String),
  idleUrl: Schema.String,
  secret: Schema.String,
  model: Schema.String,
  millis: Schema.Finite,
  perSecond: Schema.Finite
})
export type Measurement = typeof Measurement.Type
