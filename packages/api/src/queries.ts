import { AuditResource, DeploymentBucket, ModelStatus, Visibility } from "@seatrial/domain"
import { Schema, SchemaTransformation } from "effect"

/**
 * An integer in plain digits. No sign, space, exponent or leading zero, so that each value has exactly one spelling.
 */
const Digits = (minimum: number, maximum: number) =>
  Schema.String.check(Schema.isPattern(/^(0|[1-9]\d{0,15})$/u, { message: "must be a whole number in plain digits" })).pipe(
    Schema.decodeTo(
      Schema.Number.check(Schema.isBetween({ minimum, maximum }, { message: `must be between ${minimum} and ${maximum}` })),
      SchemaTransformation.transform({ decode: Number, encode: String })
    )
  )

/** Text whose length is counted in code points, as in JSON Schema. */
const Text = (maximum: number, minimum = 1) => Schema.String.check(Schema.isBetweenCodePoints(minimum, maximum))

const page = {
  /** `next_cursor` of the previous page. The other filters must be unchanged. */
  cursor: Schema.optionalKey(Text(256)),
  limit: Schema.optionalKey(Digits(1, 200))
}

/** Rows of a page if `limit` is not set. */
export const defaultLimit = 50

/** `from` inclusive and `to` exclusive, Unix milliseconds. */
const timeBounds = {
  from: Schema.optionalKey(Digits(0, Number.MAX_SAFE_INTEGER)),
  to: Schema.optionalKey(Digits(0, Number.MAX_SAFE_INTEGER))
}

export const RequestsQuery = Schema.Struct({
  ...page,
  model_id: Schema.optionalKey(Text(64)),
  api_key_id: Schema.optionalKey(Text(64)),
  status: Schema.optionalKey(Schema.Literals(["success", "client_error", "server_error"])),
  ...timeBounds
})
export type RequestsQuery = typeof RequestsQuery.Type

export const DeploymentsQuery = Schema.Struct({
  ...page,
  model_id: Schema.optionalKey(Text(64)),
  status: Schema.optionalKey(DeploymentBucket)
})
export type DeploymentsQuery = typeof DeploymentsQuery.Type

export const OrgModelsQuery = Schema.Struct({
  ...page,
  status: Schema.optionalKey(ModelStatus),
  visibility: Schema.optionalKey(Visibility),
  /**
   * Part of the slug, display name or repository, case-insensitive. Empty means no filter: the contract sets only an
   * upper bound.
   */
  q: Schema.optionalKey(Text(120, 0))
})
export type OrgModelsQuery = typeof OrgModelsQuery.Type

export const AuditEventsQuery = Schema.Struct({
  ...page,
  actor_user_id: Schema.optionalKey(Text(64)),
  resource_type: Schema.optionalKey(AuditResource),
  ...timeBounds
})
export type AuditEventsQuery = typeof AuditEventsQuery.Type

export const SuspicionsQuery = Schema.Struct(page)
export type SuspicionsQuery = typeof SuspicionsQuery.Type

/** The query of an operation that takes no query parameters. */
export const NoQuery = Schema.Record(Schema.String, Schema.Never)
