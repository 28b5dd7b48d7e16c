import { assert, describe, it } from "@effect/vitest"
import type { ModelConfig, Runtime, ServingSettings } from "@seatrial/domain"
import { engineFor } from "../src/index.ts"
import { qwen2Config } from "./anyModel.ts"

const own = (runtime: Runtime, family: Partial<ModelConfig>, engine_flags: NonNullable<ServingSettings["engine_flags"]> = {}, simulated = false): boolean => {
  const settings = { runtime, host_class: "h100", max_context: 4_096, kv_cache_dtype: "auto", engine_flags } as const
  return (
    engineFor(runtime)
      ?.offers(settings, simulated)
      .ownPrompts?.({ ...qwen2Config, ...family }) === true
  )
}

const families: ReadonlyArray<readonly [model_type: string, architecture: string, byVllm: boolean, bySglang: boolean]> = [
  ["gpt_oss", "GptOssForCausalLM", true, false],
  ["deepseek_v32", "DeepseekV32ForCausalLM", true, false],
  ["deepseek_v4", "DeepseekV4ForCausalLM", true, true],
  // 4.1 may have the architecture name of 4.
  ["deepseek_v41", "DeepseekV41ForCausalLM", true, true],
  ["deepseek_v41", "DeepseekV4ForCausalLM", true, true],
  ["kimi_k3", "KimiK3ForConditionalGeneration", true, true],
  ["inkling", "InklingForConditionalGeneration", true, true],
  ["internvl_chat", "InternVLChatModel", false, true],
  ["cohere2", "Cohere2ForCausalLM", false, false],
  ["deepseek_v3", "DeepseekV3ForCausalLM", false, false],
  ["kimi_k2", "KimiK25ForConditionalGeneration", false, false],
  ["qwen3", "Qwen3ForCausalLM", false, false]
]

describe("prompts that an engine renders itself are not compared with the repository's template", () => {
  it.each(families)("%s, %s: vLLM %s, SGLang %s", (model_type, architecture, byVllm, bySglang) => {
    assert.deepStrictEqual([own("vllm", { model_type, architecture }), own("sglang", { model_type, architecture })], [byVllm, bySglang])
    // The reference engine, which runs in place of both, uses the template.
    for (const runtime of ["vllm", "sglang"] as const) assert.isFalse(own(runtime, { model_type, architecture }, {}, true))
  })

  it.each(["deepseekv32", "deepseekv4", "deepseekv41", "kimi_k3"])("SGLang renders the prompts of %s for every model that is started with it", (parser) => {
    assert.isTrue(own("sglang", {}, { tool_call_parser: parser }))
    assert.isFalse(own("sglang", {}, { tool_call_parser: "llama3" }))
  })
})
