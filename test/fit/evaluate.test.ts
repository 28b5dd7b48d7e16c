import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { evaluate, inputsOf } from "../load/fit/evaluate.ts"
import { Start } from "../load/fit/Start.ts"

const facts = {
  architecture: "Qwen3MoeForCausalLM",
  model_type: "qwen3_moe",
  num_hidden_layers: 48,
  hidden_size: 2_048,
  num_attention_heads: 32,
  num_key_value_heads: 4,
  head_dim: 128,
  intermediate_size: 6_144,
  moe_intermediate_size: 768,
  num_experts: 128,
  num_experts_per_tok: 8,
  vocab_size: 151_936,
  max_position_embeddings: 40_960,
  torch_dtype: "bfloat16"
}
const start = (members: Readonly<Record<string, unknown>> = {}) =>
  Schema.decodeUnknownSync(Start)({
    id: "start",
    group: "test",
    model: "any",
    gpu: "H100-80GB",
    tp: 2,
    engine_version: "0.19.0",
    max_num_batched_tokens: 8_192,
    available_kv_gib: 30,
    refused: false,
    source: "test",
    ...members
  })

describe("the evaluation of a measured start", () => {
  it("counts a start as failed only if a reason is named", () => {
    assert.isFalse(evaluate(start({ refusal_kind: null }), facts).failed)
    assert.isFalse(evaluate(start(), facts).failed)
    assert.isTrue(evaluate(start({ refusal_kind: "out_of_memory" }), facts).failed)
  })

  it("does not guess the memory of a card that it does not know", () => {
    assert.throws(() => evaluate(start({ gpu: "Gaudi 3" }), facts), /start does not report the memory of its GPU.*Gaudi 3/)
    // A part of a known name is another card.
    for (const gpu of ["GH200", "RTX A4000", "H20X"]) assert.throws(() => evaluate(start({ gpu }), facts), /not known/)
    assert.strictEqual(inputsOf(start({ gpu: "Gaudi 3", gpu_memory_gib: 128 }), facts)[0]?.asked.hostClass.gpu_memory_bytes, 128 * 2 ** 30)
  })

  it("distributes whole experts if the start did, and by default over several replicas", () => {
    const distributes = (members: Readonly<Record<string, unknown>>) => inputsOf(start(members), facts)[0]?.asked.engineFlags
    assert.deepInclude(distributes({ enable_expert_parallel: true }), { enable_expert_parallel: true })
    assert.deepInclude(distributes({ dp: 2 }), { enable_expert_parallel: true, data_parallel_size: 2 })
    assert.notProperty(distributes({ dp: 2, enable_expert_parallel: false }), "enable_expert_parallel")
    assert.deepInclude(distributes({ engine: "sglang", enable_expert_parallel: true }), { ep_size: 2 })
  })

  it("uses SGLang's arithmetic for a start of SGLang", () => {
    const [own] = inputsOf(start({ engine: "sglang", gpu_memory_utilization: 0.8 }), facts)
    assert.deepStrictEqual(own?.asked.engineFlags, { chunked_prefill_size: 8_192, mem_fraction_static: 0.8 })
    // SGLang reads activations and graphs after the pool, so the same share of the memory leaves a larger pool.
    const pools = ["sglang", "vllm"].map((engine) => evaluate(start({ engine, gpu_memory_utilization: 0.8 }), facts).pool)
    assert.isAbove(pools[0]?.high ?? 0, (pools[1]?.high ?? 0) + 1)
  })
})
