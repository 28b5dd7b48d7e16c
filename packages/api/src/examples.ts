import {
  type AuditEvent,
  canonicalJson,
  type Deployment,
  type DeploymentEvents,
  type DeploymentOperation,
  type DeploymentProgress,
  type Receipt,
  type RequestRecord,
  type SignatureHeader,
  type SignedReceipt,
  type SigningKey,
  type Spending,
  type Suspicion,
  type V1Deployment
} from "@seatrial/domain"
import { Schema } from "effect"
import { exampleCommit, exampleIds, zeroRates } from "./exampleIds.ts"
import { capabilities, catalogModel, orgModel, ownModel, revision } from "./exampleModels.ts"

// The examples of the OpenAPI document. A test checks each one against its schema.

const page = <A>(record: A) => ({ object: "list", data: [record], next_cursor: null })

const request: RequestRecord = {
  id: exampleIds.request,
  object: "request",
  state: "completed",
  model_id: exampleIds.model,
  model: "acme/tiny-chat",
  api_key_id: exampleIds.key,
  endpoint: "/v1/chat/completions",
  created_at: "2026-03-02T09:30:00.000Z",
  status_code: 200,
  input_tokens: 21,
  output_tokens: 64,
  cache_read_tokens: null,
  cache_write_tokens: null,
  cost_micros: "0",
  ttft_ms: 41.5,
  latency_ms: 630.25,
  finish_reason: "stop",
  streamed: true,
  error: null,
  receipt_url: `/v1/receipts/${exampleIds.request}`
}

const receipt: Receipt = {
  request_id: exampleIds.request,
  model: "acme/tiny-chat",
  hf_revision: exampleCommit,
  config_revision: exampleIds.revision,
  engine_version: "reference-0.1.0",
  verification: { checks: [{ name: "chat-template", passed: true, detail: "12 of 12" }] },
  endpoint: "/v1/chat/completions",
  usage: { input_tokens: 21, output_tokens: 64, cache_read_tokens: null, cache_write_tokens: null },
  prices: zeroRates,
  cost_micros: "0",
  ttft_ms: 41.5,
  latency_ms: 630.25,
  finish_reason: "stop",
  status_code: 200,
  streamed: true,
  created_at: "2026-03-02T09:30:00.630Z"
}

const signingKey: SigningKey = {
  kty: "OKP",
  crv: "Ed25519",
  x: "3iVtN_irKOAhCaU-Lkai4-petUIn3-Qhrx7h-k9XFdQ",
  kid: "r_6isZYFXAOtg8WPXF_uLUudfAyyuO9Rvq4QwCK4Ee0",
  alg: "EdDSA",
  use: "sig"
}
const signatureOf: SignatureHeader = { alg: "EdDSA", kid: signingKey.kid, typ: "seatrial-receipt+jws" }
const base64Url = (value: unknown): string => Schema.encodeSync(Schema.StringFromBase64Url)(canonicalJson(value))
const signed: SignedReceipt = {
  payload: base64Url(receipt),
  protected: base64Url(signatureOf),
  signature: "czktpsVnXTuKQJS61HbvFKPCzrB91CC_g1FXXkp1wq2Io1SqXhsZqnr5lf5rkxgT4RoXEhFqemKX2tn0-Q7jAw"
}

/** The example receipt as a JWS. The example signing key verifies it. */
export const signedExamples: Examples = { signed }

const running = {
  id: exampleIds.deployment,
  object: "deployment",
  model_id: exampleIds.model,
  model: "acme/tiny-chat",
  failure_detail: null,
  created_at: "2026-03-02T09:12:03.195Z",
  updated_at: "2026-03-02T09:12:20.114Z",
  ended_at: null,
  revision_id: exampleIds.revision,
  hf_revision: exampleCommit,
  started_by_user_id: exampleIds.user
} as const
const deployment: Deployment = { ...running, status: "booting" }
const v1Deployment: V1Deployment = { ...running, status: "staging" }

const times = ["2026-03-02T09:12:03.195Z", "2026-03-02T09:12:04.020Z", "2026-03-02T09:12:20.114Z"] as const
const detail = {
  ...deployment,
  phases: [
    { status: "screening", at: times[0] },
    { status: "materializing", at: times[1] },
    { status: "booting", at: times[2] }
  ],
  checks: [],
  revision: { ...revision, status: "draft", verified_at: null }
}
const v1Detail = {
  ...v1Deployment,
  phases: [
    { status: "screening", at: times[0] },
    { status: "ingesting", at: times[1] },
    { status: "staging", at: times[2] }
  ],
  checks: [],
  revision: { ...revision, status: "draft", verified_at: null }
}
const events: DeploymentEvents = {
  deployment_id: exampleIds.deployment,
  data: [
    { phase: "screening", entered_at: times[0] },
    { phase: "ingesting", entered_at: times[1] },
    { phase: "staging", entered_at: times[2] }
  ]
}

const progress: DeploymentProgress = {
  deployment_id: exampleIds.deployment,
  object: "deployment_progress",
  status: "ingesting",
  message: "Seatrial downloads and verifies the weights: 3.0 GiB of 13.0 GiB (23%), 112 MB/s, about 2 min left.",
  queue: null,
  download: { bytes: 3_221_225_472, total_bytes: 13_958_643_712, bytes_per_second: 112_000_000, seconds_left: 96, stalled: false },
  updated_at: "2026-03-02T09:12:14.020Z"
}
const queuedProgress: DeploymentProgress = {
  ...progress,
  status: "probing",
  message: "The deployment waits for 1 GPU of H100: 2 deployments go first.",
  queue: { waits_for: "capacity", place: 3 },
  download: null
}

const spending: Spending = {
  object: "spending",
  prepaid: true,
  billing_suspended: false,
  gpu_limit: 8,
  spent: [
    { period: "day", requests_micros: "210944", gpu_time_micros: "100000" },
    { period: "month", requests_micros: "9018200", gpu_time_micros: "3400000" }
  ],
  allowances: [
    { api_key_id: null, allowance: "balance", limit_micros: "50000000", spent_micros: "41203118", reached_percent: 80 },
    { api_key_id: null, allowance: "day", limit_micros: "5000000", spent_micros: "310944", reached_percent: 0 },
    { api_key_id: exampleIds.key, allowance: "month", limit_micros: "1000000", spent_micros: "1000412", reached_percent: 100 }
  ]
}

const operation: DeploymentOperation = {
  id: exampleIds.deployment,
  object: "deployment",
  model_id: exampleIds.model,
  revision_id: null,
  status: "screening",
  status_url: `/v1/deployments/${exampleIds.deployment}`
}

const auditEvent: AuditEvent = {
  id: exampleIds.auditEvent,
  object: "audit_event",
  actor_kind: "user",
  actor_user_id: exampleIds.user,
  resource_type: "model_config",
  resource_id: exampleIds.model,
  action: "created",
  before: null,
  after: { slug: "tiny-chat", hf_repo: "seatrial/tiny-chat" },
  created_at: "2026-03-02T09:12:03.195Z"
}

const suspicion: Suspicion = {
  id: exampleIds.suspicion,
  object: "suspicion",
  model_id: exampleIds.model,
  deployment_id: exampleIds.deployment,
  revision_id: exampleIds.revision,
  engine: `${exampleIds.deployment.replace("_", "-")}-engine-0`,
  since: "2026-03-02T11:41:07.020Z",
  withdrawn_at: "2026-03-02T11:44:02.911Z",
  probes: 21,
  evidence: 12.9,
  engines: 2,
  requests: 318,
  requests_url: `/v1/org/suspicions/${exampleIds.suspicion}/requests`,
  created_at: "2026-03-02T11:44:02.870Z"
}

const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }
const pinned = { ...source, ref: null, commit: exampleCommit }
const settings = { runtime: "reference", host_class: "sim-small", max_context: 1024, kv_cache_dtype: "auto" }

const derived = {
  object: "deployment_preview",
  kind: "derived",
  source: pinned,
  architecture: "LlamaForCausalLM",
  license: "apache-2.0",
  dtype: "bfloat16",
  quantization: "none",
  weights_bytes: 1_444_096,
  serving: settings,
  fit: {
    verdict: "fits",
    host_class: "sim-small",
    gpu_pool: "Seatrial-Sim-1GiB",
    gpu_count: 1,
    gpu_memory_bytes: 1_073_741_824,
    weights_bytes: 1_444_096,
    kv_cache_bytes: 919_281_326,
    kv_bytes_per_token: 2048,
    overhead_bytes: { low: 8192, high: 67_117_056 },
    headroom_bytes: { low: 917_184_174, high: 984_293_038 },
    max_context: 1024,
    concurrent_sequences: 256,
    calibrated: false
  },
  alternatives: [],
  capabilities
}

const refused = {
  object: "deployment_preview",
  kind: "refused",
  source: { ...source, ref: null, commit: null },
  reason: { code: "repository_not_found", message: "The hub has no repository seatrial/tiny-chat that this organization can read." },
  remedy: { message: "Check the name, or connect an account that can read it.", serving: null }
}

type Examples = Readonly<Record<string, unknown>>

/** Named request bodies, by operation. */
export const requestExamples: Readonly<Record<string, Examples>> = {
  "deployments.preview": { repository: { source }, settings: { source, serving: { host_class: "sim-small", max_context: 512 } } },
  "deployments.create": {
    model: { source: { ...source, ref: "v1" }, model_name: "first", serving: { host_class: "sim-small" } },
    candidate: { source, model_name: "candidate", serve: false },
    redeploy: { model_id: exampleIds.model, serving: { max_context: 512 } }
  },
  "deployments.cancel": { nothing: {} },
  "models.disable": { nothing: {} },
  "models.enable": { nothing: {} },
  "models.setScaling": { two: { replicas: 2 }, automatic: { min_replicas: 1, max_replicas: 4 } }
}

/** Named bodies of successful responses, by operation. */
export const answerExamples: Readonly<Record<string, Examples>> = {
  listRequests: { page: page(request) },
  getRequest: { completed: request },
  getReceipt: { receipt },
  listOrgModels: { page: page(orgModel) },
  getOrgModel: { serving: orgModel },
  listDeployments: { page: page(deployment) },
  getDeployment: { running: detail },
  listSuspicions: { page: page(suspicion) },
  listSuspicionRequests: { page: page(request) },
  listAuditEvents: { page: page(auditEvent) },
  getAuditEvent: { created: auditEvent },
  "requests.list": { page: page(request) },
  "requests.get": { completed: request },
  "requests.receipt": { receipt },
  "deployments.preview": { derived, refused },
  "deployments.create": { operation },
  "deployments.list": { page: page(v1Deployment) },
  "deployments.get": { running: v1Detail },
  "deployments.events": { running: events },
  "deployments.progress": { downloading: progress, queued: queuedProgress },
  "deployments.cancel": { cancelled: { id: exampleIds.deployment, cancelled: true } },
  "models.list": { served: { object: "list", data: [ownModel] } },
  "models.getScaling": { two: { replicas: 2, status: { granted: 1, ready: 1, limit: "no_gpus" } } },
  "models.setScaling": { two: { replicas: 2 }, automatic: { replicas: 1, min_replicas: 1, max_replicas: 4, target: 0.8 } },
  "models.getLoad": {
    busy: {
      running: 30,
      waiting: 4,
      capacity: { requests: 16, source: "latency_limit" },
      desired: 3,
      ready: 2,
      engines: [
        { pod: "dep-0-engine-0", reachable: true, running: 16 },
        { pod: "dep-0-engine-1", reachable: true, running: 14 }
      ]
    }
  },
  "catalog.list": { published: { object: "list", data: [catalogModel] } },
  "spending.get": { prepaid: spending },
  "system.health": { ok: { status: "ok" } },
  "system.readiness": { ok: { status: "ok" } },
  "system.signingKeys": { current: { keys: [signingKey] } }
}
