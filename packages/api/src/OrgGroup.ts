import { AuditEvent, DeploymentDetail, OrgModel, RequestRecord } from "@seatrial/domain"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { AuditEventList, DeploymentList, OrgModelList, RequestList, SuspicionList } from "./envelopes.ts"
import { Authorization, Boundary } from "./middleware.ts"
import { policy } from "./policy.ts"
import { InvalidCursor, NotFound, NotSigned } from "./publicErrors.ts"
import { AuditEventsQuery, DeploymentsQuery, NoQuery, OrgModelsQuery, RequestsQuery, SuspicionsQuery } from "./queries.ts"
import { receiptAnswers } from "./receiptAnswers.ts"

/** Read access to the organization's data. Deployments show each phase under its own name. */
export class OrgGroup extends HttpApiGroup.make("org")
  .add(
    HttpApiEndpoint.get("listRequests", "/requests", {
      query: RequestsQuery,
      success: RequestList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["requests:read"])),
    HttpApiEndpoint.get("getRequest", "/requests/:request_id", {
      params: { request_id: Schema.String },
      query: NoQuery,
      success: RequestRecord,
      error: NotFound
    }).annotateMerge(policy("read", ["requests:read"])),
    HttpApiEndpoint.get("getReceipt", "/receipts/:request_id", {
      params: { request_id: Schema.String },
      query: NoQuery,
      success: receiptAnswers,
      error: [NotFound, NotSigned]
    }).annotateMerge(policy("read", ["requests:read"], ["inference:write"])),
    HttpApiEndpoint.get("listOrgModels", "/models", {
      query: OrgModelsQuery,
      success: OrgModelList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["models:read"])),
    HttpApiEndpoint.get("getOrgModel", "/models/:id", {
      params: { id: Schema.String },
      query: NoQuery,
      success: OrgModel,
      error: NotFound
    }).annotateMerge(policy("read", ["models:read"])),
    HttpApiEndpoint.get("listDeployments", "/deployments", {
      query: DeploymentsQuery,
      success: DeploymentList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.get("getDeployment", "/deployments/:id", {
      params: { id: Schema.String },
      query: NoQuery,
      success: DeploymentDetail,
      error: NotFound
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.get("listSuspicions", "/suspicions", {
      query: SuspicionsQuery,
      success: SuspicionList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["deployments:read"])),
    HttpApiEndpoint.get("listSuspicionRequests", "/suspicions/:id/requests", {
      params: { id: Schema.String },
      query: SuspicionsQuery,
      success: RequestList,
      error: [InvalidCursor, NotFound]
    }).annotateMerge(policy("read", ["requests:read"])),
    HttpApiEndpoint.get("listAuditEvents", "/audit-events", {
      query: AuditEventsQuery,
      success: AuditEventList,
      error: InvalidCursor
    }).annotateMerge(policy("read", ["audit:read"])),
    HttpApiEndpoint.get("getAuditEvent", "/audit-events/:id", {
      params: { id: Schema.String },
      query: NoQuery,
      success: AuditEvent,
      error: NotFound
    }).annotateMerge(policy("read", ["audit:read"]))
  )
  .prefix("/v1/org")
  .middleware(Authorization)
  .middleware(Boundary) {}
