import { Schema } from "effect"

/** A plan of the load generator: it keeps `connections` connections busy, each with one request at a time. */
export const LoadPlan = Schema.Struct({
  host: Schema.String,
  port: Schema.Int,
  /** Complete requests with headers and body, sent in rotation. */
  requests: Schema.NonEmptyArray(Schema.String),
  /** The expected status. */
  status: Schema.optionalKey(Schema.Int),
  /** A placeholder that is replaced with unique text of the same length in each request. */
  unique: Schema.optionalKey(Schema.String),
  connections: Schema.Int,
  /** Whether the frames contain the time at which they were sent. */
  stamped: Schema.optionalKey(Schema.Boolean),
  /** Warm-up that is not counted. */
  warmSeconds: Schema.Finite,
  seconds: Schema.Finite
})
export type LoadPlan = typeof LoadPlan.Type

const Spread = Schema.Struct({ p50: Schema.Finite, p99: Schema.Finite })

/** The result of a plan. Latencies in milliseconds since the last byte of the request was written. */
export const LoadResult = Schema.Struct({
  /** Responses within the measured time. */
  answers: Schema.Int,
  /** Responses including the warm-up. */
  all: Schema.Int,
  /** Responses with an unexpected status, and broken connections. */
  failures: Schema.Int,
  perSecond: Schema.Finite,
  whole: Spread,
  /** Time to the first byte of the body, which is the first frame of a stream. */
  first: Spread,
  /** Delay between sending and receiving a frame. Null if the frames contain no time. */
  frames: Schema.NullOr(Spread)
})
export type LoadResult = typeof LoadResult.Type
