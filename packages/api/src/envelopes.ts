import { AuditEvent, CatalogModel, Deployment, OrgModel, RequestRecord, V1Deployment } from "@seatrial/domain"
import { Schema } from "effect"

const list = <A extends Schema.Top>(identifier: string, record: A) =>
  Schema.Struct({
    object: Schema.Literal("list"),
    /** Newest first. */
    data: Schema.Array(record),
    /** Null marks the end. */
    next_cursor: Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, 256)))
  }).annotate({ identifier })

export const RequestList = list("RequestList", RequestRecord)
export const DeploymentList = list("OrgDeploymentList", Deployment)
export const V1DeploymentList = list("DeploymentList", V1Deployment)
export const OrgModelList = list("OrgModelList", OrgModel)
export const AuditEventList = list("AuditEventList", AuditEvent)

/** All of the served models at once: catalogs have no pages. */
export const CatalogModelList = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(CatalogModel) }).annotate({ identifier: "CatalogModelList" })

export const Cancelled = Schema.Struct({ id: Schema.String.check(Schema.isBetweenLength(1, 64)), cancelled: Schema.Literal(true) }).annotate({
  identifier: "Cancelled"
})

/** An object without members; `Schema.Struct({})` would take any value. */
export const Empty = Schema.Record(Schema.String, Schema.Never).annotate({ identifier: "Empty" })

/** Headers of what a caller may keep, and ask for again by its tag. */
export const cached = { etag: Schema.String, "cache-control": Schema.String }
