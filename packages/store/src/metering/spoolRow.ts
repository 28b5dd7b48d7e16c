import { optionalNullable, Prices, ReceiptDigests, RequestError } from "@seatrial/domain"
import { Schema, SchemaGetter } from "effect"
import type { CheckpointRow, EndRow, InsertRow, WholeRow } from "./rows.ts"

const Text = Schema.NullOr(Schema.String)
const Count = Schema.NullOr(Schema.Int)
const Money = Schema.String.check(Schema.isPattern(/^\d+$/u)).pipe(
  Schema.decodeTo(Schema.BigInt, { decode: SchemaGetter.transform((digits) => BigInt(digits)), encode: SchemaGetter.transform((micros) => micros.toString()) })
)
const tokens = { cacheReadTokens: Count, cacheWriteTokens: Count, inputTokens: Schema.Int, outputTokens: Schema.Int }
const request = { id: Schema.String, orgId: Schema.String }

const Insert = Schema.Struct({
  ...request,
  state: Schema.Literals(["running", "refused"]),
  keyId: Schema.String,
  endpoint: Schema.String,
  streamed: Schema.NullOr(Schema.Boolean),
  modelId: Text,
  model: Text,
  revisionId: Text,
  engine: optionalNullable(Schema.String),
  statusCode: Count,
  costMicros: Schema.NullOr(Money),
  latencyMs: Schema.NullOr(Schema.Finite),
  error: Schema.NullOr(RequestError)
})

const End = Schema.Struct({
  ...request,
  statusCode: Schema.Int,
  ...tokens,
  costMicros: Money,
  ttftMs: Schema.NullOr(Schema.Finite),
  latencyMs: Schema.Finite,
  finishReason: Text,
  error: Schema.NullOr(RequestError),
  note: Text,
  prices: Prices,
  hfRevision: Schema.String,
  engineVersion: Schema.String,
  engine: optionalNullable(Schema.String),
  digests: optionalNullable(ReceiptDigests)
})

const Whole = Schema.Struct({
  ...End.fields,
  state: Schema.Literal("completed"),
  keyId: Schema.String,
  endpoint: Schema.String,
  streamed: Schema.Boolean,
  modelId: Schema.String,
  model: Schema.String,
  revisionId: Schema.String
})

const Checkpoint = Schema.Struct({ ...request, ...tokens })

const SpoolRow = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("insert"), row: Insert }),
  Schema.Struct({ kind: Schema.Literal("checkpoint"), row: Checkpoint }),
  // Ends of earlier versions do not contain the data of the begin.
  Schema.Struct({ kind: Schema.Literal("end"), row: Schema.Union([Whole, End]) })
])

/** A row in the spool, and the statement that writes it. */
export type SpoolRow =
  | { readonly kind: "insert"; readonly row: InsertRow }
  | { readonly kind: "checkpoint"; readonly row: CheckpointRow }
  | { readonly kind: "end"; readonly row: EndRow | WholeRow }

const Json = Schema.fromJsonString(SpoolRow)
const encode = Schema.encodeSync(Json)
const decode = Schema.decodeUnknownOption(Json)

export const toPayload = (row: SpoolRow): Buffer => Buffer.from(encode(row))

/** None if it is not a row of this version or an earlier one. */
export const fromPayload = (payload: Buffer) => decode(payload.toString("utf8"))
