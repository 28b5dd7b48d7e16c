import { assert, describe, it } from "@effect/vitest"
import { type EngineWire, nameInEngine, publicCapabilities, servedNames } from "@seatrial/domain"
import { readEngineMetrics } from "../src/routing/readEngineMetrics.ts"
import { capabilitiesOf, everything, sentOf, takenOf, targetWith } from "./vocabularyTargets.ts"

/** The wire of an engine that does not exist. It combines values that no registered engine combines. */
const wire: EngineWire = {
  livenessPath: "/ready",
  metrics: { prefix: "madeup:", figures: new Map([["busy", "running"]]) },
  trialMetrics: { requests: [{ name: "madeup:busy" }], waiting: [], cacheUse: [], generatedTokens: [], preemptions: [], work: [], cacheConfig: null },
  errorWords: { promptTooLong: /overlong/, noRoom: null, schemaRefused: /odd schema/, refusedKeywords: /odd: (?<keywords>\w+)/ },
  acceptsLeadingHyphen: false,
  acceptsUnnamedModel: false,
  answersWithServedName: true,
  adapterModel: "lora/adapter",
  unsaltedPaths: new Set(["/v1/responses"]),
  requestIdField: "rid",
  reasoningField: "reasoning",
  recountsUsageWithReasoning: true,
  streamsCachedTokensOfFirstPrompt: true,
  streamsResponseLogprobs: false,
  overridesSamplingDefaults: true,
  readsGenerationConfig: false,
  countsCacheInSequences: false
}
const target = targetWith({ wire, cacheSalt: "salt", sampling: { temperature: 0.6 } })
const messages = [{ role: "user", content: "hi" }]

describe("an engine that is known only by its wire entry", () => {
  it("gets requests in its own format", () => {
    const body = { model: "-tuned", messages: [...messages, { role: "assistant", content: "a", reasoning_content: "r" }], stream: true }
    assert.deepInclude(sentOf(body, "/v1/chat/completions", target), {
      model: "model",
      messages: [...messages, { role: "assistant", content: "a", reasoning: "r" }],
      cache_salt: "salt",
      rid: "req_1",
      temperature: 0.6,
      stream_options: { include_usage: true }
    })
    assert.deepInclude(sentOf({ model: "a", messages }, "/v1/chat/completions", { ...target, adapted: true }), { model: "lora/adapter" })
    assert.isTrue(takenOf({ model: "a", prompt: ["a", "b"], stream: true }, "/v1/completions", target).cachedUnknown)
  })

  it("gets no salt and no request ID on paths that ignore them, and published models do not support these paths", () => {
    const sent = sentOf({ model: "a", input: "hi" }, "/v1/responses", target)
    assert.notProperty(sent, "cache_salt")
    assert.notProperty(sent, "rid")
    const capabilities = capabilitiesOf(everything)
    assert.deepStrictEqual(
      publicCapabilities(wire, capabilities).supported_endpoints,
      capabilities.supported_endpoints.filter((path) => path !== "/v1/responses")
    )
  })

  it("is started with names that it accepts", () => {
    assert.strictEqual(nameInEngine(wire, "-tuned"), "model")
    assert.deepStrictEqual(servedNames(wire, ["-tuned", "acme/-tuned"], true), ["model", "acme/-tuned"])
  })

  it("is measured by its own metrics", () => {
    const text = "madeup:busy{} 3\nvllm:num_requests_running{} 4\nsglang:num_running_reqs{} 5\n"
    assert.deepStrictEqual(readEngineMetrics(text, wire), { running: 3, waiting: null, cacheUse: null, tokens: null })
  })
})
