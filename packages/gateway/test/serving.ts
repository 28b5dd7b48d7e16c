import { type CheckReport, Commit, type Fit, Ids, type Phase, type RepositoryFacts, type ServingSettings, scopes } from "@seatrial/domain"
import { ApiKeys, Database, Deployments, HubConnections, Organizations, Requests, Runs } from "@seatrial/store"
import { makeTestDatabase } from "@seatrial/store/testing"
import { ConfigProvider, Context, Effect, Layer, Option, Redacted } from "effect"
import { inject } from "vitest"

/** The address of the database that the programs and the test share. */
export class Url extends Context.Service<Url, Redacted.Redacted<string>>()("seatrial/test/Url") {
  static readonly layer = Layer.effect(
    Url,
    Effect.suspend(() => makeTestDatabase(inject("postgres")))
  )
}

const layerSettings = ConfigProvider.layer(ConfigProvider.fromUnknown({ SEATRIAL_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64") }))

export const layerStore = Layer.mergeAll(ApiKeys.layerSql, Deployments.layerSql, Organizations.layerSql, Requests.layerSql, Runs.layerSql).pipe(
  Layer.provideMerge(HubConnections.layerSql),
  Layer.provideMerge(Ids.layer),
  Layer.provideMerge(Layer.unwrap(Effect.map(Url, (url) => Database.layerUrl(url)))),
  Layer.provideMerge(Url.layer),
  Layer.provide(layerSettings)
)

const facts: RepositoryFacts = {
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
const settings: ServingSettings = { runtime: "reference", host_class: "cpu-small", max_context: 2_048, kv_cache_dtype: "auto" }
const estimate: Fit = {
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
const checks: CheckReport = {
  suite: "trial",
  suite_version: 1,
  passed: true,
  checks: [{ name: "answers", passed: true }],
  fingerprints: [{ prompt: "p1", sha256: "d".repeat(64) }],
  fingerprint_card: "Simulated-GPU x1"
}
const path = ["materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"] as const satisfies ReadonlyArray<Phase>

/** An organisation with a key, whose model `<slug>/tiny` has passed its run and is served at `url`, as far as a gateway has reached that. */
export const makeServing = Effect.fnUntraced(function* (slug: string, url: string) {
  const keys = yield* ApiKeys
  const deployments = yield* Deployments
  const organizations = yield* Organizations
  const runs = yield* Runs
  const { id: orgId } = yield* organizations.create({ slug, name: slug })
  const user = yield* organizations.addUser({ orgId, email: `owner@${slug}.example`, name: "Owner", role: "owner" })
  yield* organizations.recordPurchase({ orgId, micros: 5_000_000n })
  const { key, secret } = yield* keys.create({ orgId, userId: user.id, name: "all", scopes })
  const caller = Option.getOrThrow(yield* keys.authenticate(secret))
  const { id } = yield* deployments.create({
    caller,
    idempotencyKey: "k",
    inputHash: "a".repeat(64),
    target: { _tag: "NewModel", source: { kind: "model_hub", repo: "seatrial/tiny-chat", ref: "main" }, slug: "tiny" },
    serving: {},
    serve: true
  })
  yield* runs.recordScreening({ id, orgId, facts, settings, engineVersion: "reference-1", estimate })
  let from: Phase = "screening"
  for (const to of path) {
    yield* runs.enter({ id, orgId, from, to, reason: "Test" })
    if (to === "checking") yield* runs.recordChecks(id, orgId, checks)
    from = to
  }
  yield* runs.publishEndpoints(id, orgId, [{ url, pod: "pod-0" }])
  yield* runs.activate({ id, orgId, from: "activating" })
  return { orgId, keyId: key.id, secret: Redacted.value(secret), model: `${slug}/tiny` }
})
