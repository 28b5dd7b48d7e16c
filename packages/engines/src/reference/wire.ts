import { adapterName, type EngineWire } from "@seatrial/domain"
import { vllmGatewayMetrics, vllmTrialMetrics } from "../vllm/wire.ts"

export const referenceWire: EngineWire = {
  livenessPath: "/health",
  metrics: vllmGatewayMetrics,
  trialMetrics: vllmTrialMetrics,
  acceptsLeadingHyphen: true,
  acceptsUnnamedModel: false,
  answersWithServedName: false,
  adapterModel: adapterName,
  unsaltedPaths: new Set(),
  requestIdField: null,
  reasoningField: "reasoning_content",
  recountsUsageWithReasoning: false,
  streamsCachedTokensOfFirstPrompt: false,
  streamsResponseLogprobs: true,
  overridesSamplingDefaults: false,
  readsGenerationConfig: false,
  countsCacheInSequences: false
}
