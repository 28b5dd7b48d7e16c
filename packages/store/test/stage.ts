import { type CheckReport, Commit, type DeploymentId, type Fit, Ids, type Phase, type RepositoryFacts, type ServingSettings, scopes } from "@seatrial/domain"
import { ConfigProvider, Effect, Layer, Option } from "effect"
import { inject } from "vitest"
import {
  ApiKeys,
  type Caller,
  type CreateInput,
  Deployments,
  HostClasses,
  HubConnections,
  Metering,
  Organizations,
  Requests,
  Routes,
  Runs
} from "../src/index.ts"
import { layerTestDatabase } from "../src/testing.ts"

/** A database of the suite's own, and ids. */
export const layerDatabase = Layer.mergeAll(Layer.unwrap(Effect.sync(() => layerTestDatabase(inject("postgres")))), Ids.layer)

export const encryptionKey = Buffer.alloc(32, 7).toString("base64")

const layerSettings = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: encryptionKey }))

export const layerApi = Layer.mergeAll(Organizations.layerSql, ApiKeys.layerSql, Deployments.layerSql).pipe(Layer.provideMerge(layerDatabase))

export const layerStore = Layer.mergeAll(Runs.layerSql, Routes.layerSql, Requests.layerSql, Metering.layerSql, HostClasses.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(layerApi),
  Layer.provide(layerSettings)
)

/** An organisation with a member and a key of all scopes, as a caller. */
export const makeCaller = Effect.fnUntraced(function* (slug: string) {
  const organizations = yield* Organizations
  const keys = yield* ApiKeys
  const organization = yield* organizations.create({ slug, name: slug })
  const user = yield* organizations.addUser({ orgId: organization.id, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  yield* organizations.recordPurchase({ orgId: organization.id, micros: 5_000_000n })
  const { secret } = yield* keys.create({ orgId: organization.id, userId: user.id, name: "all", scopes })
  const caller: Caller = Option.getOrThrow(yield* keys.authenticate(secret))
  return { caller, secret, user, organization }
})

export const newModel = (caller: Caller, idempotencyKey: string, slug = "tiny", over: Partial<CreateInput> = {}): CreateInput => ({
  caller,
  idempotencyKey,
  inputHash: "a".repeat(64),
  target: { _tag: "NewModel", source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }, slug },
  serving: {},
  serve: true,
  ...over
})

export const facts: RepositoryFacts = {
  repo: "seatrial/tiny-chat",
  ref: "main",
  commit: Commit.make("0123456789abcdef0123456789abcdef01234567"),
  license: "apache-2.0",
  gated: false,
  files: [{ path: "model.safetensors", size: 1_000, blob_id: "b".repeat(40), sha256: "c".repeat(64) }],
  config: {
    architecture: "LlamaForCausalLM",
    model_type: "llama",
    num_layers: 2,
    hidden_size: 64,
    num_attention_heads: 4,
    num_kv_heads: 2,
    head_dim: 16,
    vocab_size: 1_000,
    native_context: 2_048,
    sliding_window: null,
    dtype: "float32",
    quantization: "none"
  },
  weights_bytes: 4_000_000_000,
  parameters: 1_000_000,
  chat_template: "{{ messages }}"
}
export const settings: ServingSettings = { runtime: "reference", host_class: "cpu-small", max_context: 2_048, kv_cache_dtype: "auto" }
export const estimate: Fit = {
  verdict: "fits",
  host_class: "cpu-small",
  gpu_pool: "Simulated-GPU",
  gpu_count: 1,
  gpu_memory_bytes: 8_589_934_592,
  weights_bytes: 4_000_000_000,
  kv_cache_bytes: 1_000_000,
  kv_bytes_per_token: 512,
  overhead_bytes: { low: 1, high: 2 },
  headroom_bytes: { low: 3, high: 4 },
  max_context: 2_048,
  concurrent_sequences: 1,
  calibrated: false
}
export const checks: CheckReport = {
  suite: "trial",
  suite_version: 1,
  passed: true,
  checks: [
    { name: "answers", passed: true },
    { name: "greedy", passed: true, detail: "same=3" }
  ],
  fingerprints: [{ prompt: "p1", sha256: "d".repeat(64) }],
  fingerprint_card: "Simulated-GPU x1"
}

const path = ["materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"] as const satisfies ReadonlyArray<Phase>

/** Takes a run from `screening` through its phases until it is in `target`, recording the checks on its way. */
export const walk = Effect.fnUntraced(function* (caller: Caller, id: DeploymentId, target: (typeof path)[number], report = checks) {
  const runs = yield* Runs
  const { orgId } = caller
  yield* runs.recordScreening({ id, orgId, facts, settings, engineVersion: "reference-1", estimate })
  let from: Phase = "screening"
  for (const to of path) {
    yield* runs.enter({ id, orgId, from, to, reason: "Test" })
    if (to === "checking") yield* runs.recordChecks(id, orgId, report)
    from = to
    if (to === target) break
  }
})

/** A model that serves: the operation of the run that brought it there. */
export const makeServing = Effect.fnUntraced(function* (caller: Caller, key: string, slug = "tiny") {
  const deployments = yield* Deployments
  const runs = yield* Runs
  const operation = yield* deployments.create(newModel(caller, key, slug))
  yield* walk(caller, operation.id, "activating")
  yield* runs.activate({ id: operation.id, orgId: caller.orgId, from: "activating" })
  const run = Option.getOrThrow(yield* runs.observe(operation.id))
  if (run.revision === null) return yield* Effect.die("no revision")
  return { operation, revisionId: run.revision.id, modelId: run.modelId, model: run.model }
})

/** Repeats until the condition holds. */
export const soon = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.gen(function* () {
    while (!(yield* condition)) yield* Effect.yieldNow
  }).pipe(Effect.timeout("10 seconds"))
