import { AuditEvent, CatalogModel, Deployment, OrgModel, RequestRecord, Suspicion, V1Deployment } from "@seatrial/domain"
import { Schema } from "effect"

const list = <A extends Schema.Top>(identifier: string, record: A) =>
  Schema.Struct({
    object: Schema.Literal("list"),
    /** Newest first. */
    data: Schema.Array(record),
    /** Null on the last page. */
    next_cursor: Schema.NullOr(Schema.String.check(Schema.isBetweenLength(1, 256)))
  }).annotate({ identifier })

export const RequestList = list("RequestList", RequestRecord)
export const DeploymentList = list("OrgDeploymentList", Deployment)
export const V1DeploymentList = list("DeploymentList", V1Deployment)
export const OrgModelList = list("OrgModelList", OrgModel)
export const SuspicionList = list("SuspicionList", Suspicion)
export const AuditEventList = list("AuditEventList", AuditEvent)

/** All served models. Catalogs are not paginated. */
export const CatalogModelList = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(CatalogModel) }).annotate({ identifier: "CatalogModelList" })

export const Cancelled = Schema.Struct({ id: Schema.String.check(Schema.isBetweenLength(1, 64)), cancelled: Schema.Literal(true) }).annotate({
  identifier: "Cancelled"
})

/** An object without members. `Schema.Struct({})` would accept any value. */
export const Empty = Schema.Record(Schema.String, Schema.Never).annotate({ identifier: "Empty" })

/** Headers of a response that callers may cache and revalidate by its entity tag. */
export const cached = { etag: Schema.String, "cache-control": Schema.String }
