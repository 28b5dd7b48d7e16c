import type { OrgId, Receipt, RequestRecord } from "@seatrial/domain"
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "./Page.ts"

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

/** Requests and receipts as the API reads them. The time inside a request's id leads to its partition. */
export class Requests extends Context.Service<
  Requests,
  {
    /** Completed and refused ones only. */
    readonly list: (orgId: OrgId, query: RequestQuery) => Effect.Effect<Page<RequestRecord>>
    /** Running ones too. */
    readonly find: (orgId: OrgId, id: string) => Effect.Effect<Option.Option<RequestRecord>>
    readonly findReceipt: (orgId: OrgId, requestId: string) => Effect.Effect<Option.Option<Receipt>>
  }
>()("seatrial/Requests") {}
