import { adapterName, type EngineWire } from "@seatrial/domain"
import { vllmGatewayMetrics } from "../vllm/wire.ts"

export const referenceWire: EngineWire = {
  livenessPath: "/health",
  metrics: vllmGatewayMetrics,
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
