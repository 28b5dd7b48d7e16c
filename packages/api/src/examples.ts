import {
  type AuditEvent,
  type CatalogModel,
  canonicalJson,
  type Deployment,
  type DeploymentEvents,
  type DeploymentOperation,
  type DeploymentProgress,
  type ModelCapabilities,
  type OrgModel,
  type Prices,
  type Receipt,
  type RequestRecord,
  type Revision,
  type SignatureHeader,
  type SignedReceipt,
  type SigningKey,
  type V1Deployment
} from "@seatrial/domain"
import { Schema } from "effect"

// What the interface document shows; a test holds each to the schema beside which it stands.

export const exampleIds = {
  organization: "org_01m7yy6h8me2ta2pf0c1c5r8n4",
  key: "key_01m7yy6h8xf4gt6q9ypd3vqz1c",
  user: "usr_01m7yy6h8sffnrx2n6e8v6zv0m",
  model: "mdl_01m7yy6j3ve4mac6enberh3t2c",
  revision: "rev_01m7yy6k0be8x9cqkf1t5e2w7s",
  deployment: "dep_01m7yy6j3vev1szahpypqjejhn",
  request: "req_01m7yy6j10e68sjmjgj4e3zctx",
  auditEvent: "aud_01m7yy6j3wfz2b40s9rj3m8k6d"
} as const

const commit = "77c4b35b397353ec9b348d6f31999f4f12953632"
const zero: Prices = { input_micros_per_mtok: "0", output_micros_per_mtok: "0", cache_read_micros_per_mtok: "0", cache_write_micros_per_mtok: "0" }
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
  hf_revision: commit,
  config_revision: exampleIds.revision,
  engine_version: "reference-0.1.0",
  verification: { checks: [{ name: "chat-template", passed: true, detail: "12 of 12" }] },
  endpoint: "/v1/chat/completions",
  usage: { input_tokens: 21, output_tokens: 64, cache_read_tokens: null, cache_write_tokens: null },
  prices: zero,
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

/** The receipt of the examples as a JWS that the key of the examples verifies. */
export const signedExamples: Examples = { signed }

const revision: Revision = {
  id: exampleIds.revision,
  status: "active",
  hf_revision: commit,
  dtype: "bfloat16",
  quantization: "none",
  max_model_len: 1024,
  engine: "reference",
  engine_version: "reference-0.1.0",
  gpu_pool: "Seatrial-Sim-1GiB",
  gpu_count: 1,
  prices: zero,
  verified_at: "2026-03-02T09:12:31.402Z"
}

const orgModel: OrgModel = {
  id: exampleIds.model,
  object: "org_model",
  slug: "tiny-chat",
  display_name: "tiny-chat",
  status: "active",
  visibility: "private",
  hf_repo: "seatrial/tiny-chat",
  hf_revision: commit,
  created_at: "2026-03-02T09:12:03.195Z",
  updated_at: "2026-03-02T09:12:40.871Z",
  revision
}

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
  hf_revision: commit,
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
  message: "Downloads and verifies: 3.0 GiB of 13.0 GiB (23%), 112 MB/s, about 2 min left.",
  queue: null,
  download: { bytes: 3_221_225_472, total_bytes: 13_958_643_712, bytes_per_second: 112_000_000, seconds_left: 96, stalled: false },
  updated_at: "2026-03-02T09:12:14.020Z"
}
const queuedProgress: DeploymentProgress = {
  ...progress,
  status: "probing",
  message: "Waits for 1 GPU of H100: 2 runs go first.",
  queue: { waits_for: "capacity", place: 3 },
  download: null
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

const chatParameters = ["model", "messages", "stream", "max_tokens", "temperature", "top_p", "stop", "seed"]

const capabilities: ModelCapabilities = {
  supports_reasoning: false,
  input_modalities: ["text"],
  output_modalities: ["text"],
  supports_tool_calls: false,
  supports_json_mode: false,
  supports_structured_output: false,
  supports_image_input: false,
  image_input: null,
  supports_image_output: false,
  supports_streaming: true,
  max_output_tokens: null,
  supported_endpoints: ["/v1/chat/completions"],
  supported_parameters: chatParameters,
  supported_parameters_by_endpoint: { "/v1/chat/completions": chatParameters },
  supported_response_formats: ["text"],
  supported_response_formats_by_endpoint: { "/v1/chat/completions": ["text"] },
  reasoning_controls: { thinking_toggle: false, effort_values: [], token_budget: false },
  tool_calling: {
    tool_choice: { auto: false, required: false, named: false, none: false },
    parallel_calls: false,
    single_call: false,
    strict_arguments: false,
    tool_results: false
  },
  capability_sources: {
    supports_reasoning: "model_metadata",
    supports_tool_calls: "model_metadata",
    supports_json_mode: "engine",
    supports_structured_output: "engine",
    supports_image_input: "engine",
    supports_image_output: "engine",
    supports_streaming: "engine",
    reasoning_controls: "model_metadata",
    tool_calling: "model_metadata"
  }
}

const catalogModel: CatalogModel = {
  id: "tiny-chat",
  object: "model",
  created: 1_772_442_760,
  owned_by: "seatrial",
  display_name: "Tiny Chat",
  hf_repo: "seatrial/tiny-chat",
  hf_revision: commit,
  config_revision: exampleIds.revision,
  dtype: "bfloat16",
  quantization: "none",
  max_model_len: 1024,
  context_window: 1024,
  context_length: 1024,
  ...capabilities,
  engine: "reference",
  engine_version: "reference-0.1.0",
  price_in_micros_per_mtok: "100000",
  price_out_micros_per_mtok: "400000",
  price_cache_read_micros_per_mtok: "10000",
  price_cache_write_micros_per_mtok: "0",
  pricing: { input: 0.1, output: 0.4 },
  status: "active",
  capabilities_verified_at: 1_772_442_751
}

const prices = { price_in_micros_per_mtok: "0", price_out_micros_per_mtok: "0", price_cache_read_micros_per_mtok: "0", price_cache_write_micros_per_mtok: "0" }
const ownModel: CatalogModel = { ...catalogModel, ...prices, id: "acme/tiny-chat", owned_by: "acme", pricing: { input: 0, output: 0 } }

const source = { kind: "model_hub", repo: "seatrial/tiny-chat" }
const pinned = { ...source, ref: null, commit }
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

/** Bodies of requests by operation, each under a name. */
export const requestExamples: Readonly<Record<string, Examples>> = {
  "deployments.preview": { repository: { source }, settings: { source, serving: { host_class: "sim-small", max_context: 512 } } },
  "deployments.create": {
    model: { source: { ...source, ref: "v1" }, model_name: "first", serving: { host_class: "sim-small" } },
    candidate: { source, model_name: "candidate", serve: false },
    redeploy: { model_id: exampleIds.model, serving: { max_context: 512 } }
  },
  "deployments.cancel": { nothing: {} },
  "models.disable": { nothing: {} },
  "models.enable": { nothing: {} }
}

/** Bodies of successful answers by operation, each under a name. */
export const answerExamples: Readonly<Record<string, Examples>> = {
  listRequests: { page: page(request) },
  getRequest: { completed: request },
  getReceipt: { receipt },
  listOrgModels: { page: page(orgModel) },
  getOrgModel: { serving: orgModel },
  listDeployments: { page: page(deployment) },
  getDeployment: { running: detail },
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
  "catalog.list": { published: { object: "list", data: [catalogModel] } },
  "system.health": { ok: { status: "ok" } },
  "system.readiness": { ok: { status: "ok" } },
  "system.signingKeys": { current: { keys: [signingKey] } }
}
