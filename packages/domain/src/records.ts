import { Schema } from "effect"
import { Micros, Prices } from "./money.ts"
import { optionalNullable } from "./optionalNullable.ts"
import { Phase, V1Phase } from "./phases.ts"
import { Check, Fidelity, OutputFingerprint } from "./trial.ts"

// The records on the wire: every field is always present, and there are no other fields.

/** ISO 8601 UTC with milliseconds, ending in `Z`. */
export const Timestamp = Schema.String.check(Schema.isPattern(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u))
export const Id = Schema.String.check(Schema.isBetweenLength(1, 64))

export const RequestError = Schema.Struct({ code: Schema.String, message: Schema.String, param: Schema.NullOr(Schema.String) })
export type RequestError = typeof RequestError.Type

export const RequestState = Schema.Literals(["completed", "refused", "running"])
export type RequestState = typeof RequestState.Type

export const RequestRecord = Schema.Struct({
  id: Id,
  object: Schema.Literal("request"),
  state: RequestState,
  model_id: Schema.NullOr(Id),
  model: Schema.NullOr(Schema.String),
  api_key_id: Schema.NullOr(Id),
  endpoint: Schema.String,
  created_at: Timestamp,
  status_code: Schema.NullOr(Schema.Int),
  input_tokens: Schema.NullOr(Schema.Int),
  output_tokens: Schema.NullOr(Schema.Int),
  cache_read_tokens: Schema.NullOr(Schema.Int),
  cache_write_tokens: Schema.NullOr(Schema.Int),
  cost_micros: Schema.NullOr(Micros),
  ttft_ms: Schema.NullOr(Schema.Finite),
  latency_ms: Schema.NullOr(Schema.Finite),
  finish_reason: Schema.NullOr(Schema.String),
  streamed: Schema.NullOr(Schema.Boolean),
  error: Schema.NullOr(RequestError),
  receipt_url: Schema.NullOr(Schema.String)
}).annotate({ identifier: "Request" })
export type RequestRecord = typeof RequestRecord.Type

/** The results of a revision's trial, frozen at its activation. */
export const Verification = Schema.Struct({
  checks: Schema.Array(Check),
  outputFingerprints: Schema.optionalKey(Schema.Array(OutputFingerprint)),
  fingerprintCard: optionalNullable(Schema.String),
  fidelity: Schema.optionalKey(Fidelity)
}).annotate({ identifier: "Verification" })
export type Verification = typeof Verification.Type

export const Receipt = Schema.Struct({
  request_id: Schema.String,
  model: Schema.String,
  hf_revision: Schema.String,
  config_revision: Schema.optionalKey(Schema.String),
  base_hf_revision: Schema.optionalKey(Schema.String),
  adapter_hf_revision: Schema.optionalKey(Schema.String),
  adapter_content_hash: Schema.optionalKey(Schema.String),
  engine_version: Schema.String,
  verification: Schema.NullOr(Verification),
  endpoint: Schema.String,
  usage: Schema.Struct({
    input_tokens: Schema.Int,
    output_tokens: Schema.Int,
    cache_read_tokens: Schema.NullOr(Schema.Int),
    cache_write_tokens: Schema.NullOr(Schema.Int)
  }),
  prices: Prices,
  note: Schema.optionalKey(Schema.String),
  cost_micros: Micros,
  ttft_ms: Schema.NullOr(Schema.Finite),
  latency_ms: Schema.Finite,
  finish_reason: Schema.NullOr(Schema.String),
  status_code: Schema.Int,
  streamed: Schema.Boolean,
  created_at: Timestamp
}).annotate({ identifier: "Receipt" })
export type Receipt = typeof Receipt.Type

export const RevisionStatus = Schema.Literals(["draft", "active", "superseded"])
export type RevisionStatus = typeof RevisionStatus.Type

export const Revision = Schema.Struct({
  id: Id,
  status: RevisionStatus,
  hf_revision: Schema.String,
  dtype: Schema.String,
  quantization: Schema.String,
  max_model_len: Schema.Int,
  engine: Schema.String,
  engine_version: Schema.String,
  gpu_pool: Schema.String,
  gpu_count: Schema.Int,
  prices: Prices,
  verified_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Revision" })
export type Revision = typeof Revision.Type

const deploymentFields = <S extends typeof Phase | typeof V1Phase>(status: S) => ({
  id: Id,
  object: Schema.Literal("deployment"),
  model_id: Id,
  model: Schema.String,
  status,
  failure_detail: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  updated_at: Timestamp,
  ended_at: Schema.NullOr(Timestamp),
  revision_id: Schema.NullOr(Id),
  hf_revision: Schema.NullOr(Schema.String),
  started_by_user_id: Schema.NullOr(Id)
})
const detailFields = <S extends typeof Phase | typeof V1Phase>(status: S) => ({
  ...deploymentFields(status),
  phases: Schema.Array(Schema.Struct({ status, at: Timestamp })),
  checks: Schema.Array(Check),
  revision: Schema.NullOr(Revision)
})

/** A deployment of the org API family; `V1Deployment` differs only in phase names. */
export const Deployment = Schema.Struct(deploymentFields(Phase)).annotate({ identifier: "OrgDeployment" })
export type Deployment = typeof Deployment.Type
export const DeploymentDetail = Schema.Struct(detailFields(Phase)).annotate({ identifier: "OrgDeploymentDetail" })
export type DeploymentDetail = typeof DeploymentDetail.Type
export const V1Deployment = Schema.Struct(deploymentFields(V1Phase)).annotate({ identifier: "Deployment" })
export type V1Deployment = typeof V1Deployment.Type
export const V1DeploymentDetail = Schema.Struct(detailFields(V1Phase)).annotate({ identifier: "DeploymentDetail" })
export type V1DeploymentDetail = typeof V1DeploymentDetail.Type

export const DeploymentEvents = Schema.Struct({
  deployment_id: Id,
  data: Schema.Array(Schema.Struct({ phase: V1Phase, entered_at: Timestamp }))
}).annotate({ identifier: "DeploymentEvents" })
export type DeploymentEvents = typeof DeploymentEvents.Type

/** The response to a create request, new or replayed. */
export const DeploymentOperation = Schema.Struct({
  id: Id,
  object: Schema.Literal("deployment"),
  model_id: Id,
  revision_id: Schema.NullOr(Id),
  status: V1Phase,
  status_url: Schema.String
}).annotate({ identifier: "DeploymentOperation" })
export type DeploymentOperation = typeof DeploymentOperation.Type

export const ModelStatus = Schema.Literals(["pending", "active", "disabled"])
export type ModelStatus = typeof ModelStatus.Type
export const Visibility = Schema.Literals(["public", "private"])
export type Visibility = typeof Visibility.Type

/** A model of the organization. `revision` is the serving revision, or null. */
export const OrgModel = Schema.Struct({
  id: Id,
  object: Schema.Literal("org_model"),
  slug: Schema.String,
  display_name: Schema.String,
  status: ModelStatus,
  visibility: Visibility,
  hf_repo: Schema.String,
  hf_revision: Schema.String,
  created_at: Timestamp,
  updated_at: Timestamp,
  revision: Schema.NullOr(Revision)
}).annotate({ identifier: "OrgModel" })
export type OrgModel = typeof OrgModel.Type

export const ActorKind = Schema.Literals(["user", "system", "webhook", "admin"])
export type ActorKind = typeof ActorKind.Type
export const AuditResource = Schema.Literals(["org", "membership", "invitation", "api_key", "billing", "model_config"])
export type AuditResource = typeof AuditResource.Type
export const AuditAction = Schema.Literals([
  "created",
  "updated",
  "activated",
  "deleted",
  "revoked",
  "invited",
  "joined",
  "role_changed",
  "removed",
  "resumed",
  "granted"
])
export type AuditAction = typeof AuditAction.Type

/** One change of the organization's data. `before` and `after` are any JSON and contain no secrets. */
export const AuditEvent = Schema.Struct({
  id: Id,
  object: Schema.Literal("audit_event"),
  actor_kind: ActorKind,
  actor_user_id: Schema.NullOr(Id),
  resource_type: AuditResource,
  resource_id: Schema.String,
  action: AuditAction,
  before: Schema.Json,
  after: Schema.Json,
  created_at: Timestamp
}).annotate({ identifier: "AuditEvent" })
export type AuditEvent = typeof AuditEvent.Type

/** Requests of a suspicion are counted up to this number. */
export const mostSuspectRequests = 1_000

/** A serving engine whose probes differed from its trial. */
export const Suspicion = Schema.Struct({
  id: Id,
  object: Schema.Literal("suspicion"),
  model_id: Id,
  deployment_id: Id,
  revision_id: Id,
  /** The name of the engine's pod. */
  engine: Schema.String,
  /** The earliest last good probe of the texts that show the fault, or the begin of the probes. An hour earlier if the engine was busy at that probe. */
  since: Timestamp,
  /** When the engine got no requests any more; null while it serves. */
  withdrawn_at: Schema.NullOr(Timestamp),
  /** Probes after `since` until the alarm. */
  probes: Schema.Int,
  /** The evidence at the alarm, as a power of ten. */
  evidence: Schema.Finite,
  /** The engines of the revision at the alarm, with this one. */
  engines: Schema.Int,
  /** The organization's ended requests that this engine answered at or after `since`, at most 1,000. */
  requests: Schema.Int,
  /** Lists these requests. */
  requests_url: Schema.String,
  created_at: Timestamp
}).annotate({ identifier: "Suspicion" })
export type Suspicion = typeof Suspicion.Type
