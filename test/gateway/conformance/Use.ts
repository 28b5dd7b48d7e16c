import { Schema } from "effect"

/** One use of a client, as its user would write it. */
export interface Use {
  readonly client: "openai" | "anthropic"
  /** The gateway's address, without a path. */
  readonly address: string
  readonly key: string
  /** How the key is sent: `bearer`, or as Anthropic's older clients do. */
  readonly auth?: "bearer" | "x-api-key"
  /** The path of the method, as `chat.completions.create`; that of what has the helper, where `how` is `helper`. */
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
  /** Is told how many items of a stream have come. */
  readonly onItem?: (count: number) => void
}

/** An error as the user of a client catches it. */
export const Fault = Schema.Struct({
  kind: Schema.String,
  /** The names of its class and of those above it. */
  family: Schema.Array(Schema.String),
  message: Schema.String,
  status: Schema.NullOr(Schema.Int),
  /** Anthropic's `errorCode` where that is the client. */
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
