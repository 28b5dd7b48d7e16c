import { adapterName, type EngineWire } from "@seatrial/domain"
import { grammarKeywords } from "../vllm/wire.ts"
import { sglangMetrics } from "./readings.ts"

/** Answers 200 after the engine has generated a token, which takes between 1 and 20 seconds. */
export const sglangHealthPath = "/health"

export const sglangWire: EngineWire = {
  // Cheap, unlike `sglangHealthPath`.
  livenessPath: "/ready",
  metrics: {
    prefix: "sglang:",
    figures: new Map([
      ["num_running_reqs", "running"],
      ["num_queue_reqs", "waiting"],
      ["token_usage", "cacheUse"],
      // Grows with each batch. The next two grow only when a request ends.
      ["realtime_tokens_total", "tokens"],
      ["prompt_tokens_total", "tokens"],
      ["generation_tokens_total", "tokens"]
    ])
  },
  trialMetrics: {
    requests: [{ name: sglangMetrics.running }, { name: sglangMetrics.waiting }],
    waiting: [{ name: sglangMetrics.waiting }],
    cacheUse: [{ name: sglangMetrics.cacheUse }],
    generatedTokens: [{ name: sglangMetrics.realtimeTokens, label: 'mode="decode"' }],
    preemptions: [{ name: sglangMetrics.preempted }],
    // SGLang counts `realtime_tokens` with each batch, and other tokens only at the end of a request.
    work: [
      { name: sglangMetrics.realtimeTokens },
      { name: sglangMetrics.promptTokens },
      { name: sglangMetrics.generatedTokens },
      { name: sglangMetrics.preempted },
      { name: sglangMetrics.cacheUse }
    ],
    cacheConfig: null
  },
  errorWords: {
    // SGLang reserves some tokens at the end of its context.
    promptTooLong: /Input length \((?<prompt>\d{1,12}) tokens\) exceeds the maximum allowed length \((?<refused>\d{1,12}) tokens\)/,
    noRoom: /maximum context length of (?<context>\d{1,9}) tokens\. .{0,100}?(?<prompt>\d{1,9}) tokens from the input messages/,
    schemaRefused: /Unimplemented keys:/,
    refusedKeywords: grammarKeywords
  },
  acceptsLeadingHyphen: true,
  acceptsUnnamedModel: false,
  answersWithServedName: false,
  // It splits `base:adapter` at the colon.
  adapterModel: `base:${adapterName}`,
  // The request class of these paths has no member for a salt.
  unsaltedPaths: new Set(["/v1/messages", "/v1/messages/count_tokens"]),
  requestIdField: "rid",
  reasoningField: "reasoning_content",
  recountsUsageWithReasoning: false,
  streamsCachedTokensOfFirstPrompt: false,
  streamsResponseLogprobs: false,
  overridesSamplingDefaults: true,
  readsGenerationConfig: true,
  countsCacheInSequences: false
}
