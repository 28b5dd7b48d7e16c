import { PgClient } from "@effect/sql-pg"
import { idMillis, type OrgId, Receipt, RequestId, RequestRecord } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schema, Struct } from "effect"
import { SqlSchema } from "effect/sql"
import { IsoFromDate } from "./columns.ts"
import { ReadPool } from "./Database.ts"
import type { Page, PageRequest, Position } from "./Page.ts"
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

/** One page of a list as the wire writes it: `data` is the JSON array of the records. */
export interface JsonPage {
  readonly data: string
  readonly next: Position | null
}

const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(RequestRecord))
const decodeRecords = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(RequestRecord)))

const isRequestId = Schema.is(RequestId)

/** Requests and receipts as the API reads them. A receipt needs no request: those are dropped by age. The time inside a request's id leads to its partition. */
export class Requests extends Context.Service<
  Requests,
  {
    /** Completed and refused ones only. */
    readonly list: (orgId: OrgId, query: RequestQuery) => Effect.Effect<Page<RequestRecord>>
    /** The same as JSON text, which Postgres has written: decoding and encoding it again would cost more than the query. */
    readonly listJson: (orgId: OrgId, query: RequestQuery) => Effect.Effect<JsonPage>
    /** Running ones too. */
    readonly find: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<RequestRecord>>
    /** The same as JSON text. */
    readonly findJson: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<string>>
    readonly findReceipt: (orgId: OrgId, requestId: string) => Effect.Effect<Option.Option<Receipt>>
  }
>()("seatrial/Requests") {
  static readonly layerSql = Layer.effect(
    Requests,
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const reads = yield* ReadPool

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

      const listJson = Effect.fnUntraced(function* (orgId: OrgId, query: RequestQuery) {
        const [row] = yield* Effect.orDie(listStatement(reads, orgId, query))
        const more = row !== undefined && row.created_at !== null && row.id !== null
        const page: JsonPage = { data: `[${row?.data ?? ""}]`, next: more ? { createdAt: row.created_at.getTime(), id: row.id } : null }
        return page
      })
      const findJson = Effect.fnUntraced(function* (orgId: OrgId, id: string) {
        if (!isRequestId(id)) return Option.none()
        const rows = yield* Effect.orDie(findStatement(reads, orgId, id))
        return Option.map(Option.fromUndefinedOr(rows[0]), ({ json }) => json)
      })

      return Requests.of({
        list: Effect.fn("Requests.list")(function* (orgId, query) {
          const { data, next } = yield* listJson(orgId, query)
          return { items: decodeRecords(data), next }
        }),
        listJson,
        find: Effect.fn("Requests.find")(function* (orgId, id) {
          return Option.map(yield* findJson(orgId, id), (json) => decodeRecord(json))
        }),
        findJson,
        findReceipt: Effect.fn("Requests.findReceipt")(function* (orgId, id) {
          if (!isRequestId(id)) return Option.none()
          const found = yield* Effect.orDie(findReceipt({ orgId, id }))
          return Option.map(found, ({ created_at, receipt }): Receipt => ({ ...receipt, created_at }))
        })
      })
    })
  )
}
