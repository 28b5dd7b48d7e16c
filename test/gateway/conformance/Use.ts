import { Schema } from "effect"

/** One use of a client, as its user would write it. */
export interface Use {
  readonly client: "openai" | "anthropic"
  /** The gateway's address, without a path. */
  readonly address: string
  readonly key: string
  /** How the key is sent: `bearer`, or as Anthropic's older clients do. */
  readonly auth?: "bearer" | "x-api-key"
  /** The path of the method, such as `chat.completions.create`; the path of the helper's owner if `how` is `helper`. */
  readonly call: string
  readonly args?: Readonly<Record<string, unknown>>
  /** Members of the body that the client's own signature does not have. */
  readonly extra?: Readonly<Record<string, unknown>>
  /** Arguments without a name. */
  readonly words?: ReadonlyArray<string>
  readonly how?: "whole" | "list" | "stream" | "helper" | "cancel"
  /** Leaves a stream after so many items. */
  readonly leave?: number
  readonly retries?: number
  /** Called with the number of received items of a stream. */
  readonly onItem?: (count: number) => void
}

/** An error as the user of a client catches it. */
export const Fault = Schema.Struct({
  kind: Schema.String,
  /** The names of its class and of those above it. */
  family: Schema.Array(Schema.String),
  message: Schema.String,
  status: Schema.NullOr(Schema.Int),
  /** Anthropic's `errorCode` if that is the client. */
  code: Schema.NullOr(Schema.String),
  type: Schema.NullOr(Schema.String),
  param: Schema.NullOr(Schema.String),
  requestId: Schema.NullOr(Schema.String),
  body: Schema.Unknown
})

/** What the user of a client sees. */
export const Seen = Schema.Struct({
  value: Schema.Json,
  items: Schema.Array(Schema.Json),
  error: Schema.NullOr(Fault),
  requestId: Schema.NullOr(Schema.String)
})
export type Seen = typeof Seen.Type
