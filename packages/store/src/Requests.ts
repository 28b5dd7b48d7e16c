import { PgClient } from "@effect/sql-pg"
import { idMillis, type OrgId, Receipt, RequestId, type RequestRecord } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schema, Struct } from "effect"
import { SqlSchema } from "effect/sql"
import { IsoFromDate } from "./columns.ts"
import { type Page, type PageRequest, pageOf } from "./Page.ts"
import { findStatement, listStatement } from "./requests/statements.ts"

export interface RequestQuery extends PageRequest {
  readonly modelId?: string
  readonly apiKeyId?: string
  /** `success` is 200-399, `client_error` 400-499, `server_error` 500-599. */
  readonly status?: "success" | "client_error" | "server_error"
  /** Unix milliseconds, inclusive. */
  readonly from?: number
  /** Unix milliseconds, exclusive. */
  readonly to?: number
}

/** A row of `requests` as the driver gives it. It is not decoded again: a test holds `recordOf` against the record's schema. */
interface RequestRow {
  readonly id: string
  readonly state: RequestRecord["state"]
  readonly model_id: string | null
  readonly model: string | null
  readonly api_key_id: string | null
  readonly endpoint: string
  readonly created_at: Date
  readonly status_code: number | null
  readonly input_tokens: number | null
  readonly output_tokens: number | null
  readonly cache_read_tokens: number | null
  readonly cache_write_tokens: number | null
  readonly cost_micros: bigint | null
  readonly ttft_ms: number | null
  readonly latency_ms: number | null
  readonly finish_reason: string | null
  readonly streamed: boolean | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly error_param: string | null
}

const recordOf = (row: RequestRow): RequestRecord => {
  // The tokens of a running request are its last checkpoint, which is nobody's business yet.
  const running = row.state === "running"
  return {
    id: row.id,
    object: "request",
    state: row.state,
    model_id: row.model_id,
    model: row.model,
    api_key_id: row.api_key_id,
    endpoint: row.endpoint,
    created_at: row.created_at.toISOString(),
    status_code: row.status_code,
    input_tokens: running ? null : row.input_tokens,
    output_tokens: running ? null : row.output_tokens,
    cache_read_tokens: running ? null : row.cache_read_tokens,
    cache_write_tokens: running ? null : row.cache_write_tokens,
    cost_micros: row.cost_micros === null ? null : row.cost_micros.toString(),
    ttft_ms: row.ttft_ms,
    latency_ms: row.latency_ms,
    finish_reason: row.finish_reason,
    streamed: row.streamed,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? "", param: row.error_param },
    receipt_url: row.state === "completed" ? `/v1/receipts/${row.id}` : null
  }
}

const isRequestId = Schema.is(RequestId)

/** Requests and receipts as the API reads them. A receipt needs no request: those are dropped by age. The time inside a request's id leads to its partition. */
export class Requests extends Context.Service<
  Requests,
  {
    /** Completed and refused ones only. */
    readonly list: (orgId: OrgId, query: RequestQuery) => Effect.Effect<Page<RequestRecord>>
    /** Running ones too. */
    readonly find: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<RequestRecord>>
    readonly findReceipt: (orgId: OrgId, requestId: string) => Effect.Effect<Option.Option<Receipt>>
  }
>()("seatrial/Requests") {
  static readonly layerSql = Layer.effect(
    Requests,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient

      // Beside the object stands what a receipt may lack: absent there is not null.
      const findReceipt = SqlSchema.findOneOption({
        Request: Schema.Struct({ orgId: Schema.String, id: Schema.String }),
        Result: Schema.Struct({ receipt: Receipt.mapFields(Struct.omit(["created_at"])), created_at: IsoFromDate }),
        execute: ({ id, orgId }) => {
          const at = new Date(idMillis(id))
          return sql`
            SELECT t.created_at, jsonb_build_object(
              'request_id', t.request_id, 'model', t.model, 'hf_revision', t.hf_revision, 'engine_version', t.engine_version, 'verification', r.verification,
              'endpoint', t.endpoint,
              'usage', jsonb_build_object('input_tokens', t.input_tokens, 'output_tokens', t.output_tokens,
                'cache_read_tokens', t.cache_read_tokens, 'cache_write_tokens', t.cache_write_tokens),
              'prices', jsonb_build_object('input_micros_per_mtok', t.input_micros_per_mtok::text, 'output_micros_per_mtok', t.output_micros_per_mtok::text,
                'cache_read_micros_per_mtok', t.cache_read_micros_per_mtok::text, 'cache_write_micros_per_mtok', t.cache_write_micros_per_mtok::text),
              'cost_micros', t.cost_micros::text, 'ttft_ms', t.ttft_ms, 'latency_ms', t.latency_ms, 'finish_reason', t.finish_reason,
              'status_code', t.status_code, 'streamed', t.streamed)
              || CASE WHEN t.note IS NULL THEN '{}' ELSE jsonb_build_object('note', t.note) END
              || CASE WHEN t.revision_id IS NULL THEN '{}' ELSE jsonb_build_object('config_revision', t.revision_id) END AS receipt
            FROM receipts t
            LEFT JOIN revisions r ON r.org_id = t.org_id AND r.id = t.revision_id
            WHERE t.org_id = ${orgId} AND t.created_at = ${at} AND t.request_id = ${id}`
        }
      })

      return Requests.of({
        list: Effect.fn("Requests.list")(function* (orgId, query) {
          const rows = yield* Effect.orDie(listStatement<RequestRow>(sql, orgId, query))
          return pageOf(rows.map(recordOf), query.limit)
        }),
        find: Effect.fn("Requests.find")(function* (orgId, id) {
          if (!isRequestId(id)) return Option.none()
          const rows = yield* Effect.orDie(findStatement<RequestRow>(sql, orgId, id))
          return Option.map(Option.fromUndefinedOr(rows[0]), recordOf)
        }),
        findReceipt: Effect.fn("Requests.findReceipt")(function* (orgId, id) {
          if (!isRequestId(id)) return Option.none()
          const found = yield* Effect.orDie(findReceipt({ orgId, id }))
          return Option.map(found, ({ created_at, receipt }): Receipt => ({ ...receipt, created_at }))
        })
      })
    })
  )
}
