import { assert, describe, it } from "@effect/vitest"
import { derivePreview, type HostClass, type ModelConfig, type RepositoryFacts, type Runtime, type ServingRequest } from "@seatrial/domain"
import { tinyRopeConfig } from "../../../test/models/modelConfigs.ts"
import { engines } from "../src/index.ts"
import { factsOf } from "./anyModel.ts"

const hostClass = (name: string, runtime: Runtime, gpu_pool: string, simulated: boolean, gib: number): HostClass => ({
  name,
  runtimes: [{ runtime, image: "i" }],
  gpu_pool,
  gpu_count: 1,
  gpu_memory_bytes: gib * 2 ** 30,
  price_per_gpu_hour_micros: "1",
  simulated
})
const processor = hostClass("processor", "reference", "sim", true, 8)
const standIn = hostClass("stand-in", "vllm", "sim", true, 8)
const t4 = hostClass("t4", "vllm", "Tesla-T4", false, 15)
const h100 = hostClass("h100", "vllm", "NVIDIA-H100-80GB-HBM3", false, 80)

const llama: ModelConfig = { ...tinyRopeConfig, computation: { activation: "silu", attention_bias: false, mlp_bias: false, rope: "default" } }
const facts = (config: Partial<ModelConfig>, weights_bytes = 1_444_096) => factsOf({ ...llama, ...config }, weights_bytes, 700_000)
const gelu: Partial<ModelConfig> = { computation: { activation: "gelu", attention_bias: false, mlp_bias: false, rope: "default" } }
const dynamic: Partial<ModelConfig> = {
  rope: { parameters: { rope_type: "dynamic", factor: 2, rope_theta: 10_000 }, nested: false, max_positions: 1_024 }
}
const refusalOf = (of: RepositoryFacts, hostClasses: ReadonlyArray<HostClass>, request: ServingRequest = {}) => {
  const answer = derivePreview({ facts: of, ref: null, request, hostClasses, engines })
  return answer.kind === "refused" ? answer : assert.fail("it was derived")
}

describe("the remedy for an unsupported model", () => {
  const operator = "Ask the cluster administrator for real GPUs with the runtime vllm or sglang."
  const cases: ReadonlyArray<readonly [why: string, of: RepositoryFacts, hostClass: HostClass, remedy: string]> = [
    ["an activation that the others have", facts(gelu), processor, operator],
    ["a scaling of positions that the others have", facts(dynamic), processor, operator],
    ["what stands in on simulated GPUs computes no more", facts(gelu), standIn, operator],
    [
      "another checkpoint, or real GPUs",
      facts({ quantization: "fp8", quantization_scheme: {} }),
      standIn,
      `Choose a checkpoint of one of these quantizations: none, or a${operator.slice(1)}`
    ]
  ]
  for (const [why, of, hostClass, remedy] of cases) {
    it(why, () => {
      const { reason, remedy: given } = refusalOf(of, [hostClass])
      assert.strictEqual(reason.code, "unsupported_architecture")
      assert.deepStrictEqual(given, { message: remedy, serving: null })
    })
  }

  it("chooses the host class that supports the model if it is large enough, and names it otherwise", () => {
    assert.deepInclude(refusalOf(facts(gelu), [processor, h100], { host_class: "processor" }).remedy.serving, { host_class: "h100", runtime: "vllm" })
    const { remedy } = refusalOf(facts(gelu, 200 * 2 ** 30), [processor, h100], { host_class: "processor" })
    assert.deepStrictEqual(remedy, {
      message:
        "Request the runtime vllm on the host class h100, which supports the model. Run a preview with these settings to see whether anything else must change.",
      serving: null
    })
  })

  it("for a quantization that the card is too old for names supported methods and other cards", () => {
    const { remedy } = refusalOf(facts({ quantization: "mxfp4", quantization_scheme: {} }), [t4])
    assert.match(
      remedy.message,
      /^Choose a checkpoint of one of these quantizations: .*\bnone\b.*, or ask the cluster administrator for other GPUs with the runtime vllm or sglang\.$/
    )
    assert.notInclude(remedy.message, "mxfp4")
  })

  it("for an unknown method names the known ones, and for a model without an engine another model", () => {
    assert.match(
      refusalOf(facts({ quantization: "of_nobody" }), [h100]).remedy.message,
      /^Choose a checkpoint of one of these quantizations: .*\bawq\b.*\bnone\b[^']*\.$/
    )
    const [reference] = engines.filter((engine) => engine.runtime === "reference")
    if (reference === undefined) return assert.fail()
    const alone = derivePreview({ facts: facts(gelu), ref: null, request: {}, hostClasses: [processor], engines: [reference] })
    assert.deepNestedInclude(alone, { "remedy.message": "Choose another model." })
  })
})
