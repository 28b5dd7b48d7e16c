import { adapterName, type EngineWire } from "@seatrial/domain"
import { vllmGatewayMetrics, vllmTrialMetrics, vllmWire } from "../vllm/wire.ts"

export const referenceWire: EngineWire = {
  livenessPath: "/health",
  metrics: vllmGatewayMetrics,
  trialMetrics: vllmTrialMetrics,
  errorWords: { ...vllmWire.errorWords, refusedKeywords: /the keyword (?<keywords>\S{1,40}) is not supported/ },
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
