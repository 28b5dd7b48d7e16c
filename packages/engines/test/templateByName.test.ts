import { assert, describe, it } from "@effect/vitest"
import { derivePreview, type HostClass } from "@seatrial/domain"
import { llama8bConfig } from "../../../test/models/modelConfigs.ts"
import { engines } from "../src/index.ts"
import { factsOf } from "./anyModel.ts"

const hostClass = (simulated: boolean): HostClass => ({
  name: "h100",
  runtimes: [
    { runtime: "sglang", image: "i" },
    { runtime: "vllm", image: "i" }
  ],
  gpu_pool: "NVIDIA-H100-80GB-HBM3",
  gpu_count: 1,
  gpu_memory_bytes: 80 * 2 ** 30,
  price_per_gpu_hour_micros: "1",
  simulated
})
const preview = (repo: string, options: { readonly chat_template?: string | null; readonly simulated?: boolean; readonly model_type?: string } = {}) => {
  const { chat_template = "{{ messages }}", model_type = "llama", simulated = false } = options
  const rope = { parameters: { rope_theta: 10_000 }, nested: false, max_positions: 131_072 }
  const computation = { activation: "silu", attention_bias: false, mlp_bias: false, rope: "default" } as const
  const facts = { ...factsOf({ ...llama8bConfig, model_type, rope, computation }), repo, chat_template }
  return derivePreview({ facts, ref: null, request: { runtime: "sglang" }, hostClasses: [hostClass(simulated)], engines })
}

describe("a repository whose name makes SGLang use a built-in chat template", () => {
  it.each([
    ["someone/llama-unlimited-8b", "unlimited-ocr"],
    ["lmsys/vicuna-7b-v1.5", "vicuna_v1.1"],
    ["Points/any", "points-v15-chat"],
    ["deepseek-fans/any-VL2", "deepseek-vl2"],
    ["any/MiniCPM-V-2", "minicpmv"]
  ])("%s is refused by SGLang and served by vLLM", (repo, template) => {
    const answer = preview(repo)
    assert(answer.kind === "refused")
    assert.include(answer.reason.message, `uses its built-in chat template ${template} for a model named ${repo}`)
    assert.strictEqual(answer.remedy.serving?.runtime, "vllm")
  })

  it("is accepted without a template, for the template's own family, on simulated GPUs, and with another name", () => {
    assert.strictEqual(preview("lmsys/vicuna-7b-v1.5", { chat_template: null }).kind, "derived")
    assert.strictEqual(preview("OpenGVLab/InternVL-any", { model_type: "internvl_chat" }).kind, "derived")
    assert.strictEqual(preview("someone/llama-unlimited-8b", { simulated: true }).kind, "derived")
    for (const repo of ["any/MiniCPM-V-4.6", "any/checkpoints-8b", "any/deepseek-r1"]) assert.strictEqual(preview(repo).kind, "derived", repo)
  })
})
