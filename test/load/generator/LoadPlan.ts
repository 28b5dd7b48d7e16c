import { Schema } from "effect"

/** What the load generator does: keeps `connections` connections busy, each with one request at a time. */
export const LoadPlan = Schema.Struct({
  host: Schema.String,
  port: Schema.Int,
  /** Whole requests, head and body; taken in turn. */
  requests: Schema.NonEmptyArray(Schema.String),
  /** The status of a right answer. */
  status: Schema.optionalKey(Schema.Int),
  /** Each occurrence of it in a request is replaced by text as long, which no other request has. */
  unique: Schema.optionalKey(Schema.String),
  connections: Schema.Int,
  /** The frames of the answers tell when they were sent. */
  stamped: Schema.optionalKey(Schema.Boolean),
  /** Not counted in the figures. */
  warmSeconds: Schema.Finite,
  seconds: Schema.Finite
})
export type LoadPlan = typeof LoadPlan.Type

const Spread = Schema.Struct({ p50: Schema.Finite, p99: Schema.Finite })

/** What it saw. Latencies in milliseconds, from the request's last byte handed over. */
export const LoadResult = Schema.Struct({
  /** Answers within the measured time. */
  answers: Schema.Int,
  /** Answers of the warm-up too. */
  all: Schema.Int,
  /** Answers of another status than the right one, and broken connections. */
  failures: Schema.Int,
  perSecond: Schema.Finite,
  whole: Spread,
  /** To the first byte of the body: of a stream, its first frame. */
  first: Spread,
  /** From when a frame was sent to when it came, of those that tell; null where none does. */
  frames: Schema.NullOr(Spread)
})
export type LoadResult = typeof LoadResult.Type
