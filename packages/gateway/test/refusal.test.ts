import { assert, describe, it } from "@effect/vitest"
import { type InferencePath, type ModelCapabilities, requestVocabulary, withdrawCapabilities } from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { Effect } from "effect"
import { Refusal } from "../src/refusals.ts"
import { capabilityUses, essential } from "./capabilityUses.ts"
import { answers, makeEngine, wholeAnswer } from "./fakeEngine.ts"
import { fetched, makeStage } from "./stage.ts"
import { ableTemplate, capabilitiesOf, everything, outcomeOf, takenOf, targetWith } from "./vocabularyTargets.ts"

const codeOf = (text: string): unknown => {
  const { error } = JSON.parse(text)
  return error.code ?? error.details.error_code
}

const all = capabilitiesOf(everything)

/** The booleans and lists of a record that state what is supported, with their paths. */
const leavesOf = (value: unknown, path: string): ReadonlyArray<string> => {
  if (typeof value === "boolean" || Array.isArray(value)) return [path]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => leavesOf(inner, path === "" ? name : `${path}.${name}`))
}

describe("a capability that a model does not have", () => {
  it("has a test request that would use it", () => {
    const { capability_sources: _, image_input: __, input_modalities: ___, output_modalities: ____, supported_parameters: _____, ...told } = all
    const shown = new Set(capabilityUses.map(({ capability }) => capability))
    const needless = ["supported_response_formats", "supported_parameters_by_endpoint", "supported_response_formats_by_endpoint"]
    for (const leaf of leavesOf(told, "")) if (!needless.some((name) => leaf.startsWith(name))) assert.isTrue(shown.has(leaf), leaf)
    for (const [path, fields] of Object.entries(requestVocabulary)) {
      for (const field of fields) {
        if (essential.has(field) || (path === "/v1/messages" && field === "max_tokens")) continue
        assert.isTrue(shown.has(`supported_parameters_by_endpoint.${path}.${field}`), `${path} ${field}`)
      }
    }
  })

  it.live("is refused by its name before the engine gets a byte; a model with the capability gets the request", () =>
    Effect.gen(function* () {
      const engine = yield* makeEngine(answers(wholeAnswer("a")))
      const { address, world } = yield* makeStage([engine.url])
      for (const { body, capability, code, param, path, without } of capabilityUses) {
        const request = { ...body, model: world.route.model }
        world.route = { ...world.route, capabilities: without }
        const received = yield* fetched(address, { path, body: request })
        const refusal = outcomeOf(request, path, targetWith({ capabilities: without }))
        assert.deepStrictEqual(refusal instanceof Refusal && [refusal.code, refusal.param], [code, param], `${capability} ${JSON.stringify(body)}`)
        assert.deepStrictEqual([received.status(), codeOf(received.text())], [400, code], `${capability} ${JSON.stringify(body)}`)
        assert.strictEqual(engine.calls.length, 0, capability)
        // No model generates images, so there is no image output.
        if (capability === "supports_image_output" || capability === "supports_image_input") continue
        takenOf(request, path, targetWith())
      }
    })
  )

  const withdrawn = [
    "json_mode",
    "json_schema",
    "tool_choice_auto",
    "tool_choice_required",
    "tool_choice_named",
    "tool_choice_none",
    "tool_parallel",
    "tool_strict",
    "tool_round_trip",
    "responses_tools",
    "messages_tools",
    "messages_count",
    "responses_tool_choice",
    "responses_tool_single",
    "messages_tool_choice",
    "responses_logprobs",
    "responses_thinking",
    "messages_thinking",
    "texts_json_mode",
    "responses_json_schema",
    "messages_json_schema",
    "texts_echo"
  ]
  const templates = [null, ableTemplate, "{% if tools %}<tool_call>{% endif %}", "<think>{{ enable_thinking }}", "<|image_pad|>"]
  const models = engines.flatMap(({ served, version }) =>
    templates.flatMap((template): ReadonlyArray<readonly [string, ModelCapabilities]> => {
      const capable = capabilitiesOf(served, template)
      return [
        [`${version} with ${template}`, capable] as const,
        ...withdrawn.map((check) => [`${version} with ${template} and ${check} failed`, withdrawCapabilities(capable, [check])] as const)
      ]
    })
  )

  it("is refused for every engine, every kind of template and every failed check", () => {
    const served = (capabilities: ModelCapabilities, capability: string, path: string): boolean => {
      if (capability === "supported_endpoints") return capabilities.supported_endpoints.includes(path)
      if (capability.startsWith("supported_parameters"))
        return (capabilities.supported_parameters_by_endpoint[path] ?? []).includes(capability.slice(capability.lastIndexOf(".") + 1))
      if (capability.startsWith("supported_response"))
        return (capabilities.supported_response_formats_by_endpoint[path] ?? []).includes(capability.slice(capability.lastIndexOf(".") + 1))
      const value = capability
        .split(".")
        .reduce<unknown>(
          (at, name) => (typeof at === "object" && at !== null ? Object.entries(at).find(([each]) => each === name)?.[1] : undefined),
          capabilities
        )
      return Array.isArray(value) ? value.includes("high") : value === true
    }
    let refused = 0
    for (const [model, capabilities] of models) {
      for (const { body, capability, path } of capabilityUses) {
        if (served(capabilities, capability, path)) continue
        // A model that does not think may be asked not to think.
        if (capability === "reasoning_controls.thinking_toggle" && path.startsWith("/v1/messages") && !capabilities.supports_reasoning) continue
        assert.instanceOf(outcomeOf({ ...body, model: "m" }, path, targetWith({ capabilities })), Refusal, `${model}: ${capability} ${JSON.stringify(body)}`)
        refused++
      }
    }
    assert.isAbove(refused, 500)
  })

  it("is not refused if the value matches the default, which clients send to every model", () => {
    const defaults: ReadonlyArray<readonly [check: string, path: InferencePath, body: Readonly<Record<string, unknown>>]> = [
      ["responses_tool_choice", "/v1/responses", { tools: [{ type: "function", name: "f" }], tool_choice: "auto" }],
      ["responses_tool_single", "/v1/responses", { tools: [{ type: "function", name: "f" }], parallel_tool_calls: true }],
      ["messages_tool_choice", "/v1/messages", { tools: [{ name: "f", input_schema: {} }], tool_choice: { type: "auto" } }],
      ["messages_thinking", "/v1/messages", { thinking: { type: "adaptive" } }],
      ["responses_thinking", "/v1/responses", { reasoning: { summary: "auto" } }],
      ["messages_effort", "/v1/messages", { output_config: {} }],
      ["responses_logprobs", "/v1/responses", { include: ["reasoning.encrypted_content"] }]
    ]
    for (const [check, path, body] of defaults) {
      const least = path === "/v1/messages" ? { messages: [{ role: "user", content: "hi" }], max_tokens: 9 } : { input: "hi" }
      takenOf({ ...least, ...body, model: "m" }, path, targetWith({ capabilities: withdrawCapabilities(all, [check]) }))
    }
  })
})
