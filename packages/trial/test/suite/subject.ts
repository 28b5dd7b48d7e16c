import { modelCapabilities, nothingServed } from "@seatrial/domain"
import { Effect } from "effect"
import { makeEngineClient } from "../../src/EngineClient.ts"
import type { SuiteSubject } from "../../src/suite/SuiteSubject.ts"
import { vllmMetrics } from "../engineMetrics.ts"
import { fakeContext } from "./fakeEngine.ts"
import { servedName } from "./fakeWords.ts"

const none = modelCapabilities(nothingServed, { chat_template: null, commit: "c" })

/** Everything that text models can be asked for. */
const everything: SuiteSubject["capabilities"] = {
  ...none,
  supports_json_mode: true,
  supports_structured_output: true,
  supports_tool_calls: true,
  tool_calling: {
    tool_choice: { auto: true, required: true, named: true, none: true },
    parallel_calls: true,
    single_call: true,
    strict_arguments: true,
    tool_results: true
  }
}

const config: SuiteSubject["repository"]["config"] = {
  architecture: "LlamaForCausalLM",
  model_type: "llama",
  num_layers: 1,
  hidden_size: 16,
  num_attention_heads: 1,
  num_kv_heads: 1,
  head_dim: 16,
  vocab_size: 1_000,
  native_context: fakeContext,
  sliding_window: null,
  dtype: "float32",
  quantization: "none"
}

/** A subject at that address: a model of a million parameters with valid files and an unreadable tokenizer. */
export const subjectAt = (url: string, change: Partial<SuiteSubject> = {}) =>
  Effect.map(
    makeEngineClient({ url, timeout: "5 seconds", work: vllmMetrics.work }),
    (client): SuiteSubject => ({
      client,
      servedName,
      maxContext: fakeContext,
      engineVersion: "fake-1.0.0",
      vocabSize: 1_000,
      chat: true,
      card: "simulated x1",
      salt: "",
      seed: 1,
      parameters: 1_000_000,
      slots: 8,
      offers: { scoring: { prompt_logprobs: 0 }, prefixCache: true, seeds: true, weightVersion: "/model_info" },
      metrics: vllmMetrics,
      batchInvariant: false,
      capabilities: everything,
      repository: {
        commit: "c".repeat(40),
        config,
        weights: [{ path: "model.safetensors", size: 4_000_100 }],
        weightsBytes: 4_000_000,
        parameters: 1_000_000,
        small: new Map(),
        tokenizer: null,
        template: null,
        thinking: { thinks: false, toggle: false }
      },
      start: { verifiedFiles: 5, readOnly: true, offline: true, localPath: true, ownImage: true },
      earlier: [],
      cacheTokens: () => null,
      ...change
    })
  )
