import { type OrgId, Receipt, ReceiptDigests, RequestId, RequestRecord } from "@seatrial/domain"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { ReadPool } from "./Database.ts"
import { groupedLookUps } from "./groupedLookUps.ts"
import type { JsonPage, Page, PageRequest } from "./Page.ts"
import { jsonPageOf } from "./requests/jsonPage.ts"
import { type FoundReceipt, findReceiptStatement, findStatement, listStatement } from "./requests/statements.ts"

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

/** A receipt as JSON text, with the digests that its signature covers if the request asked for them. */
export interface StoredReceipt {
  readonly json: string
  readonly digests: ReceiptDigests | null
}

const decodeDigests = Schema.decodeUnknownSync(Schema.fromJsonString(ReceiptDigests))
const decodeRecord = Schema.decodeUnknownSync(Schema.fromJsonString(RequestRecord))
const decodeReceipt = Schema.decodeUnknownSync(Schema.fromJsonString(Receipt))
const decodeRecords = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(RequestRecord)))

const isRequestId = Schema.is(RequestId)

/**
 * Requests and receipts as the API returns them. Receipts outlive requests, which are dropped by age. The time in a
 * request's ID determines its partition.
 */
export class Requests extends Context.Service<
  Requests,
  {
    /** Completed and refused requests only. */
    readonly list: (orgId: OrgId, query: RequestQuery) => Effect.Effect<Page<RequestRecord>>
    /** The same as JSON text from Postgres: decoding and encoding it again would cost more than the query. */
    readonly listJson: (orgId: OrgId, query: RequestQuery) => Effect.Effect<JsonPage>
    /** Includes running requests. */
    readonly find: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<RequestRecord>>
    /** The same as JSON text. */
    readonly findJson: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<string>>
    readonly findReceipt: (orgId: OrgId, requestId: string) => Effect.Effect<Option.Option<Receipt>>
    /** A receipt with the digests that its signature covers. */
    readonly findStoredReceipt: (orgId: OrgId, requestId: string) => Effect.Effect<Option.Option<StoredReceipt>>
  }
>()("seatrial/Requests") {
  static readonly layerSql = Layer.effect(
    Requests,
    Effect.gen(function* () {
      const reads = yield* ReadPool

      const findRequest = groupedLookUps((keys) => findStatement(reads, keys))
      const findReceipt = groupedLookUps((keys) => findReceiptStatement(reads, keys))
      const findJson = (orgId: OrgId, id: string) =>
        isRequestId(id)
          ? Effect.orDie(
              Effect.map(
                findRequest({ orgId, id }),
                Option.map(({ json }) => json)
              )
            )
          : Effect.succeed(Option.none<string>())
      const stored = ({ digests, json }: FoundReceipt): StoredReceipt => ({ json, digests: digests === null ? null : decodeDigests(digests) })
      const findStoredReceipt = (orgId: OrgId, id: string) =>
        isRequestId(id) ? Effect.orDie(Effect.map(findReceipt({ orgId, id }), Option.map(stored))) : Effect.succeed(Option.none<StoredReceipt>())

      const listJson = Effect.fnUntraced(function* (orgId: OrgId, query: RequestQuery) {
        const [row] = yield* Effect.orDie(listStatement(reads, orgId, query))
        return jsonPageOf(row)
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
          return Option.map(yield* findStoredReceipt(orgId, id), ({ json }) => decodeReceipt(json))
        }),
        findStoredReceipt
      })
    })
  )
}
