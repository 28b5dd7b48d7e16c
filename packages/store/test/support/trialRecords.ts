import {
  type Benchmark,
  benchmarkRow,
  type Check,
  type CheckReport,
  Commit,
  type Fit,
  kvCapacityRow,
  type Measured,
  type ModelCapabilities,
  modelCapabilities,
  nothingServed,
  type RepositoryFacts,
  requestVocabulary,
  type ServingSettings
} from "@seatrial/domain"

// Records of a tiny model's run, for tests.

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
const chat = "/v1/chat/completions"
const text = "/v1/completions"
export const capabilities: ModelCapabilities = modelCapabilities(
  {
    ...nothingServed,
    paths: {
      [chat]: { parameters: requestVocabulary[chat], responseFormats: ["text"] },
      [text]: { parameters: requestVocabulary[text], responseFormats: ["text"] }
    }
  },
  facts
)
export const settings: ServingSettings = { runtime: "reference", host_class: "cpu-small", max_context: 2_048, kv_cache_dtype: "auto" }
export const engineImage = "registry.example/reference:1"
export const engineDigest = `sha256:${"5".repeat(64)}`
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
  format: 2,
  suite: "trial",
  suite_version: 1,
  passed: true,
  checks: [
    { name: "answers", passed: true },
    { name: "greedy", passed: true, detail: "same=3" }
  ],
  outcomes: [
    { name: "answers", class: "required", outcome: "passed" },
    { name: "greedy", class: "informs", outcome: "passed" }
  ],
  fingerprints: [{ prompt: "p1", sha256: "d".repeat(64) }],
  fingerprint_card: "Simulated-GPU x1"
}

export const measured: Measured = {
  weights_bytes: 1_000,
  kv_cache_bytes: 1_000,
  kv_cache_tokens: 100_000,
  overhead_bytes: 0,
  max_concurrency: 4,
  load_seconds: 1
}

export const benchmark: Benchmark = {
  suite: "seatrial-bench",
  suite_version: 1,
  input_tokens: 128,
  output_tokens: 32,
  seed: 1,
  steps: [
    {
      concurrency: 1,
      requests: 10,
      errors: 0,
      seconds: 1,
      ttft_ms_p50: 1,
      ttft_ms_p90: null,
      tpot_ms_p50: 1,
      tpot_ms_p90: null,
      output_tokens_per_s: 100
    }
  ]
}

const measuredRow = (row: Check | null): Check => {
  if (row === null) throw new Error("nothing was measured")
  return row
}

/** The additional row of `checks` after both results are recorded. */
export const capacityRow = measuredRow(kvCapacityRow(measured, 2_048, true))
export const speedRow = measuredRow(benchmarkRow(benchmark))

/** The result of screening, without the run. */
export const screened = { facts, settings, engineVersion: "reference-1", engineImage, estimate, capabilities }
