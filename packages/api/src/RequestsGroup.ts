import { RequestRecord } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { RequestList } from "./envelopes.ts"
import { Authorization, Boundary } from "./middleware.ts"
import { policy } from "./policy.ts"
import { InvalidCursor, NotFound, NotSigned } from "./publicErrors.ts"
import { NoQuery, RequestsQuery } from "./queries.ts"
import { receiptAnswers } from "./receiptAnswers.ts"

/** Inference requests and their receipts. */
export class RequestsGroup extends HttpApiGroup.make("requests")
  .add(
    HttpApiEndpoint.get("list", "/v1/requests", {
      query: RequestsQuery,
      success: RequestList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["requests:read"])),
    HttpApiEndpoint.get("get", "/v1/requests/:request_id", {
      params: { request_id: Schema.String },
      query: NoQuery,
      success: RequestRecord,
      error: NotFound
    }).annotateMerge(policy("read", ["requests:read"])),
    HttpApiEndpoint.get("receipt", "/v1/receipts/:request_id", {
      params: { request_id: Schema.String },
      query: NoQuery,
      success: receiptAnswers,
      error: [NotFound, NotSigned]
    }).annotateMerge(policy("read", ["requests:read"], ["inference:write"]))
  )
  .middleware(Authorization)
  .middleware(Boundary) {}
