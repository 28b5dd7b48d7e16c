import { type CheckReport, Commit, DeploymentId, type HostClass, ModelId, OrgId, RevisionId } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import type { Run, RunRevision } from "@seatrial/store"
import { Schema } from "effect"
import { tinyConfig } from "../../../test/models/modelConfigs.ts"
import type { Observation } from "../src/observation/Observation.ts"
import { noGrowth } from "../src/observation/ObservedEngine.ts"
import { ObservedFetch } from "../src/observation/ObservedFetch.ts"
import type { ObservedPod } from "../src/observation/ObservedPod.ts"
import { ObservedReference } from "../src/observation/ObservedReference.ts"
import type { PodClass } from "../src/resources/PodClass.ts"

const body = "01k3v7m8q2w4x6y8z0a2b4c6d8"
export const deploymentId = Schema.decodeSync(DeploymentId)(`dep_${body}`)
export const orgId = Schema.decodeSync(OrgId)(`org_${body}`)
export const modelId = Schema.decodeSync(ModelId)(`mdl_${body}`)
export const revisionId = Schema.decodeSync(RevisionId)(`rev_${body}`)
export const commit = Schema.decodeSync(Commit)("0123456789abcdef0123456789abcdef01234567")
export const otherDeployment = Schema.decodeSync(DeploymentId)("dep_01k3v7m8q2w4x6y8z0a2b4c6d9")

export const hostClass: HostClass = {
  name: "local",
  runtimes: [{ runtime: "reference", image: "reference:1" }],
  gpu_pool: "simulated",
  gpu_count: 1,
  gpu_memory_bytes: 2 ** 30,
  price_per_gpu_hour_micros: "1000000",
  simulated: true
}

export const podClass: PodClass = {
  hostClass,
  gpuResource: "nvidia.com/gpu",
  nodeSelector: {},
  tolerations: [],
  weightsClaim: null,
  benchmarkSeconds: 4,
  bootDeadlineSeconds: 600,
  nodes: 1,
  runtimeClassName: null,
  cpu: null,
  memoryBytes: null,
  guaranteed: false,
  sharedMemoryBytes: 2 ** 30,
  priorityClassName: null,
  schedulerName: null,
  labels: {},
  annotations: {},
  env: [],
  affinity: {},
  extraResources: {},
  resourceClaims: [],
  scratch: { claimName: null, sizeBytes: null, requestBytes: null },
  compileCache: null,
  weightsCache: null,
  podSecurity: { runAsRoot: false, writableRoot: false, addCapabilities: [] },
  drainSeconds: 30,
  evictable: true,
  rollout: "surge",
  queueName: null,
  autoscaling: false,
  maxGpus: null
}

export const report: CheckReport = {
  format: 2,
  suite: "seatrial-core",
  suite_version: 0,
  passed: true,
  checks: [{ name: "usage_exact", passed: true }],
  outcomes: [{ name: "usage_exact", class: "required", outcome: "passed" }],
  fingerprints: [],
  fingerprint_card: null
}

/** A report of one failed check that ends the run. */
export const failedReport = (name: string, detail: string): CheckReport => ({
  ...report,
  passed: false,
  checks: [{ name, passed: false, detail }],
  outcomes: [{ name, class: "required", outcome: "failed", detail }]
})

export const step = {
  concurrency: 1,
  requests: 10,
  errors: 0,
  seconds: 2,
  ttft_ms_p50: 3,
  ttft_ms_p90: null,
  tpot_ms_p50: 1,
  tpot_ms_p90: null,
  output_tokens_per_s: 100
}
export const benchmark = { suite: "seatrial-bench", suite_version: 1, input_tokens: 128, output_tokens: 32, seed: 1, steps: [step] }
export const measured = { weights_bytes: 1000, kv_cache_bytes: 1000, kv_cache_tokens: 4096, overhead_bytes: 0, max_concurrency: 4, load_seconds: 1 }

export const revision: RunRevision = {
  id: revisionId,
  status: "draft",
  facts: {
    repo: "seatrial/tiny-chat",
    ref: "main",
    commit,
    license: null,
    gated: false,
    files: [{ path: "model.safetensors", size: 2 ** 20, blob_id: "b".repeat(40), sha256: "a".repeat(64) }],
    config: { ...tinyConfig, num_layers: 2, hidden_size: 64, head_dim: 16, vocab_size: 256 },
    weights_bytes: 2 ** 20,
    parameters: 500_000,
    chat_template: null
  },
  settings: { runtime: "reference", host_class: "local", max_context: 1024, kv_cache_dtype: "auto" },
  engineVersion: "reference-0.1.0",
  engineImage: "reference:1",
  engineDigest: null,
  estimate: {
    verdict: "fits",
    host_class: "local",
    gpu_pool: "simulated",
    gpu_count: 1,
    gpu_memory_bytes: 2 ** 30,
    weights_bytes: 2 ** 20,
    kv_cache_bytes: 2 ** 20,
    kv_bytes_per_token: 256,
    overhead_bytes: { low: 0, high: 0 },
    headroom_bytes: { low: 0, high: 0 },
    max_context: 1024,
    concurrent_sequences: 4,
    calibrated: false
  },
  checks: null,
  measured: null,
  benchmark: null
}

export const run: Run = {
  id: deploymentId,
  orgId,
  orgSlug: "acme",
  modelId,
  model: "acme/tiny-chat",
  phase: "screening",
  phaseSince: 0,
  requeues: 0,
  failure: null,
  source: { kind: "model_hub", repo: "seatrial/tiny-chat" },
  servingRequest: {},
  keptChoices: null,
  serve: true,
  startedBy: null,
  createdAt: 0,
  traceparent: null,
  endedAt: null,
  revision: null,
  placements: [],
  activeRevisionId: null,
  modelDeleted: false,
  modelDisabled: false,
  engineRun: deploymentId,
  reusedBy: [],
  gpuLimit: null,
  spendLimited: false,
  billingSuspendedAt: null,
  olderRun: null,
  endpoints: [],
  replaces: false,
  replacedBy: null,
  predecessor: null,
  shownBy: null,
  candidates: [],
  lastUsedAt: null,
  inFlight: 0,
  applied: null,
  storedWeights: [],
  nodeFaults: [],
  history: [{ phase: "screening", at: 0, reason: null }],
  progress: null
}

export const url = "http://127.0.1.1:8000"
export const pod: ObservedPod = {
  name: "dep-01k3v7m8q2w4x6y8z0a2b4c6d8-engine-0",
  uid: "pod-1",
  node: "node-1",
  image: "reference:1",
  imageDigest: null,
  imagePinned: false,
  madeFrom: null,
  createdAt: 0,
  deleting: false,
  scheduled: true,
  scheduledAt: 0,
  startedAt: 0,
  readyChangedAt: 0,
  unschedulable: null,
  gated: false,
  copy: null,
  merge: null,
  started: true,
  ready: true,
  unreadySidecar: null,
  restarts: 0,
  lastExit: null,
  blocked: null,
  lost: null,
  gpuFault: false,
  nodeDownSince: null,
  url
}

export const observed: Observation = {
  run: { ...run, revision },
  resource: { uid: "mdep-1", shownPhase: "screening" },
  shownSince: 0,
  keepFinished: null,
  podClass,
  engine: engineFor("reference") ?? null,
  fetch: ObservedFetch.Absent(),
  reference: ObservedReference.Settled({ code: null }),
  heldSince: null,
  weights: null,
  pod: null,
  engines: [],
  growth: noGrowth,
  load: null,
  boot: null,
  merged: "none",
  blockedSince: null,
  bootLog: null,
  refusal: null,
  freeSlots: 1,
  ahead: 0,
  hasUncountedPods: false,
  requestedEngines: 0,
  classGpus: 0,
  shortage: null,
  setAside: false,
  roomOn: null,
  nodeGpus: 1,
  freeGpus: 0,
  options: [],
  organizationGpus: 0,
  admission: null,
  funding: null,
  predecessorHolds: false,
  predecessorPlace: null,
  candidates: [],
  elsewhere: false,
  outdated: false,
  budget: "absent",
  work: { running: null, ended: null },
  sameStart: false,
  withdrawnAt: null,
  firstReadings: new Map(),
  leadingSince: 0,
  released: true
}

/** An observation of a run in that phase, with these differences. */
export const observationOf = (phase: Run["phase"], change: Partial<Observation> = {}, runChange: Partial<Run> = {}): Observation => ({
  ...observed,
  ...change,
  run: { ...observed.run, phase, ...runChange }
})

/** The run's revision with the findings of the trial so far. */
export const withRevision = (change: Partial<RunRevision>): Partial<Run> => ({ revision: { ...revision, ...change } })
