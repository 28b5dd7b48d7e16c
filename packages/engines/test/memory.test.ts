import { assert, describe, it } from "@effect/vitest"
import { type EngineLoad, estimateFit, type FitInput, kvLayoutOf, type LayerGroup, type ModelConfig } from "@seatrial/domain"
import { Schema } from "effect"
import { sglangLimits, sglangMemory } from "../src/sglang/memory.ts"
import { vllmLimits, vllmMemory } from "../src/vllm/memory.ts"
import { qwen2Config, qwen2Shape } from "./anyModel.ts"

const gib = 2 ** 30
const config: ModelConfig = {
  ...qwen2Config,
  architecture: "Qwen3ForCausalLM",
  model_type: "qwen3",
  num_layers: 40,
  hidden_size: 5_120,
  num_attention_heads: 40,
  num_kv_heads: 8,
  vocab_size: 151_936,
  native_context: 40_960,
  shape: { ...qwen2Shape, layers: [{ kind: "full", layers: 40, kv_heads: 8, head_size: 128, head_size_v: 128 }], intermediate_size: 17_408 }
}
const load = (flags: EngineLoad["flags"] = {}, gpu_pool = "NVIDIA-H100-80GB-HBM3", memory = 79.19, gpu_count = 1): EngineLoad => ({
  config,
  flags,
  card: { gpu_pool, gpu_count, gpu_memory_bytes: memory * gib },
  maxContext: 8_192
})

describe("vLLM's memory", () => {
  it.each([
    ["0.10.2", 0.9],
    ["0.22.0", 0.9],
    ["v0.22.1", 0.92],
    ["0.33.0", 0.92]
  ])("of %s uses a share of %d by default", (version, share) => {
    assert.strictEqual(vllmMemory(version).budget(load()), 79.19 * gib * share)
  })

  it.each([
    ["H100", "0.33.0", 79.19, "H100-80GB", 1_024, 8_192],
    ["A100", "0.33.0", 79.25, "A100-80GB", 256, 2_048],
    ["B200", "0.33.0", 178.4, "B200", 1_024, 16_384],
    ["L4", "0.33.0", 22.03, "L4", 256, 2_048],
    ["V0 engine, which reads a prompt whole", "0.7.2", 79.25, "A100-80GB", 256, 8_192]
  ])("has the limits of the card and version: %s", (_, version, memory, pool, sequences, stepTokens) => {
    const limits = vllmLimits(version, load({}, pool, memory))
    assert.deepStrictEqual([limits.sequences, limits.stepTokens], [sequences, stepTokens])
  })

  it("has a 60 % lower peak since 0.17, as measured for a 14B model: 5.64 GiB before, 2.23 GiB after", () => {
    const peak = (version: string) => vllmMemory(version).overhead(load({ max_num_batched_tokens: 8_192 })).activation
    assert.isTrue(peak("0.16.0").low <= 5.64 * gib && 5.64 * gib <= peak("0.16.0").high)
    assert.isTrue(peak("0.17.0").low <= 2.23 * gib && 2.23 * gib <= peak("0.17.0").high)
    assert.isBelow(peak("0.17.0").high, peak("0.16.0").high / 2)
  })

  it("has graphs in the pool since 0.21, outside of it before, and none in eager mode", () => {
    const graphs = (version: string, flags = {}) => vllmMemory(version).overhead(load(flags))
    assert.strictEqual(graphs("0.20.1").graphs.high, 0)
    assert.isAbove(graphs("0.20.1").afterPool.low, graphs("0.21.0").afterPool.low)
    assert.isAbove(graphs("0.21.0").graphs.high, 0)
    assert.strictEqual(graphs("0.33.0", { enforce_eager: true }).graphs.high, 0)
  })

  it("is lower with fewer sequences and fewer tokens per step", () => {
    const { overhead } = vllmMemory("0.33.0")
    const small = overhead(load({ max_num_seqs: 16, max_num_batched_tokens: 2_048 }))
    const large = overhead(load({ max_num_seqs: 1_024, max_num_batched_tokens: 16_384 }))
    assert.isBelow(small.activation.high, large.activation.high)
    assert.isBelow(small.graphs.high, large.graphs.high)
  })
})

describe("vLLM's memory after the KV cache", () => {
  const gptOss: ModelConfig = {
    ...config,
    architecture: "GptOssForCausalLM",
    num_layers: 24,
    hidden_size: 2_880,
    num_attention_heads: 64,
    vocab_size: 201_088,
    quantization: "mxfp4",
    shape: {
      ...qwen2Shape,
      layers: [
        { kind: "full", layers: 12, kv_heads: 8, head_size: 64, head_size_v: 64 },
        { kind: "sliding", layers: 12, kv_heads: 8, head_size: 64, head_size_v: 64, window: 128 }
      ],
      intermediate_size: null,
      experts: { count: 32, active: 4, intermediate_size: 2_880 }
    }
  }
  const limits = { gpu_memory_utilization: 0.95, max_num_batched_tokens: 8_192 }
  const afterPool = (version: string, of: ModelConfig, flags: EngineLoad["flags"] = limits) =>
    vllmMemory(version).overhead({ ...load(flags), config: of }).afterPool
  /** Beyond 95% of an H100 and 300 MiB of its driver. */
  const free = 0.05 * 79.19 * gib - 300 * 2 ** 20

  it.each(["0.11.0", "0.19.0", "0.33.0"])("of %s may not suffice for packed experts and 1,024 sequences, and does with 64", (version) => {
    assert.isAbove(afterPool(version, gptOss).high, free)
    assert.isBelow(afterPool(version, gptOss, { ...limits, max_num_seqs: 64 }).high, free)
  })

  it("includes the experts' workspaces, and the sampler's whole warm-up in versions that do not profile it", () => {
    const dense = { ...gptOss, shape: { ...(gptOss.shape ?? assert.fail()), experts: null } }
    const [plain, packed] = [{ ...gptOss, quantization: "none" }, gptOss].map((each) => afterPool("0.33.0", each, { ...limits, enforce_eager: true }).high)
    const logits = 1_024 * 201_088 * 4
    assert.strictEqual(afterPool("0.33.0", dense, { ...limits, enforce_eager: true }).high, logits * 6 * 0.5)
    assert.strictEqual(afterPool("0.32.0", dense, { ...limits, enforce_eager: true }).high, logits * 6)
    // 8,192 tokens, 4 active experts, two workspaces of 16-bit values.
    assert.strictEqual(plain, logits * 6 * 0.5 + 2 * 8_192 * 4 * (2 * 2_880 + 2_880))
    assert.strictEqual((packed ?? 0) - (plain ?? 0), logits * 6 * 0.5)
  })
})

describe("vLLM's cache of layers of different kinds", () => {
  const attention = { kv_heads: 16, head_size: 128, head_size_v: 128 }
  const gemma3: FitInput = {
    config: {
      ...config,
      architecture: "Gemma3ForConditionalGeneration",
      num_layers: 62,
      shape: {
        ...qwen2Shape,
        layers: [
          { kind: "full", layers: 10, ...attention },
          { kind: "sliding", layers: 52, ...attention, window: 1_024 }
        ]
      }
    },
    weightsBytes: 51 * gib,
    engine: { memory: vllmMemory("0.33.0"), version: "vllm-0.33.0" },
    hostClass: {
      name: "h100",
      gpu_pool: "NVIDIA-H100-80GB-HBM3",
      gpu_count: 1,
      gpu_memory_bytes: 79 * gib,
      price_per_gpu_hour_micros: "1",
      runtimes: [{ runtime: "vllm", image: "image" }],
      simulated: false
    },
    kvCacheDtype: "auto",
    contextLimit: 131_072,
    maxContext: 8_192
  }
  const blocksOfWindow = (stepTokens: number) => Math.ceil(Math.min(1_023 + stepTokens, 8_192) / 16) + 1
  const sequenceOf = (engineFlags: FitInput["engineFlags"], memory = vllmMemory("0.33.0")) => {
    const result = estimateFit({ ...gemma3, engine: { ...gemma3.engine, memory }, engineFlags })
    return "fit" in result ? result.components.sequence : assert.fail("it does not fit")
  }
  const page = 16 * 16 * 256 * 2

  it("is padded to groups of equal size, so that the engine's tokens agree and no event reports another layout", () => {
    const result = estimateFit(gemma3)
    if (!("fit" in result)) return assert.fail("it does not fit")
    // vLLM divides the pool by the blocks of a sequence in 7 groups of 10 layers.
    const bytesOfSequence = 10 * (512 + 6 * blocksOfWindow(16_384)) * page
    const cache = 20 * gib
    const measured = { kv_cache_bytes: cache, kv_cache_tokens: Math.floor((cache / bytesOfSequence) * 8_192) }
    const layout = kvLayoutOf(measured, {
      config: gemma3.config,
      wire: { countsCacheInSequences: true },
      fit: result.fit,
      sequenceBytes: result.components.sequence
    })
    assert.isFalse(layout?.differs)
  })

  it("keeps the windows of two steps since 0.32, and of one without asynchronous scheduling", () => {
    const flags = { max_num_batched_tokens: 2_048 }
    const expected = (stepTokens: number) => 10 * (512 + 6 * blocksOfWindow(stepTokens)) * page
    assert.strictEqual(sequenceOf(flags), expected(4_096))
    assert.strictEqual(sequenceOf({ ...flags, async_scheduling: false }), expected(2_048))
    assert.strictEqual(sequenceOf(flags, vllmMemory("0.25.1")), expected(2_048))
  })
})

describe("SGLang's memory", () => {
  it("is marked as compared with no measurement, until a start of this installation calibrates it", () => {
    const layers: ReadonlyArray<LayerGroup> = [{ kind: "full", layers: 40, kv_heads: 8, head_size: 128, head_size_v: 128 }]
    assert.isTrue(longest(sglangMemory, "Qwen3ForCausalLM", layers).unmeasured)
    assert.notProperty(longest(vllmMemory("0.33.0"), "Qwen3ForCausalLM", layers), "unmeasured")
  })

  it("reserves for activations and graphs what SGLang's own rule reserves for chunks, graphs and GPUs", () => {
    // 512 + 8,192 x 1.5 + 1/8 x 1,024 + 256 x 2 MiB of 79.19 GiB; large cards reserve at least 10 GiB.
    assert.strictEqual(sglangLimits(load()).fraction, 0.834)
    assert.strictEqual(sglangLimits(load({ chunked_prefill_size: 2_048 })).fraction, 0.874)
    assert.deepInclude(sglangLimits(load({}, "L4", 22.03)), { chunk: 4_096, graphSequences: 48, fraction: 0.695 })
    assert.strictEqual(sglangLimits(load({ mem_fraction_static: 0.7 })).fraction, 0.7)
  })
})

const attention = { kv_heads: 8, head_size: 128, head_size_v: 128 }
/** The longest context of a model with these layers on one card, and its cache. */
const longest = (
  memory: typeof sglangMemory,
  architecture: string,
  layers: ReadonlyArray<LayerGroup>,
  engineFlags: Readonly<Record<string, number | boolean>> = {},
  contextLimit = 100_000_000
) => {
  const shape = { ...(config.shape ?? assert.fail()), layers }
  const result = estimateFit({
    config: { ...config, architecture, shape },
    weightsBytes: 40 * gib,
    engine: { memory, version: "an engine" },
    hostClass: {
      name: "h100",
      gpu_pool: "NVIDIA-H100-80GB-HBM3",
      gpu_count: 1,
      gpu_memory_bytes: 79 * gib,
      price_per_gpu_hour_micros: "1",
      runtimes: [{ runtime: "sglang", image: "image" }],
      simulated: false
    },
    kvCacheDtype: "auto",
    engineFlags,
    contextLimit
  })
  return "fit" in result ? result.fit : assert.fail("it does not fit")
}

describe("SGLang's cache of sliding-window layers", () => {
  const sliding: LayerGroup = { kind: "sliding", layers: 30, ...attention, window: 1_024 }
  const full: LayerGroup = { kind: "full", layers: 10, ...attention }
  /** Bytes per token and layer. */
  const token = 8 * 256 * 2

  it("keeps every token if the architecture has no separate pool", () => {
    const { kv_cache_bytes, max_context } = longest(sglangMemory, "Gemma3ForCausalLM", [sliding, full])
    assert.strictEqual(max_context, Math.floor(kv_cache_bytes / (40 * token)))
    assert.isBelow(max_context, longest(vllmMemory("0.33.0"), "Gemma3ForCausalLM", [sliding, full]).max_context / 3)
    assert.strictEqual(longest(sglangMemory, "MistralForCausalLM", [{ ...sliding, layers: 40 }]).max_context, max_context)
  })

  it("follows the size of the other pool by a configurable share if it has a separate pool", () => {
    const { kv_cache_bytes, max_context } = longest(sglangMemory, "GptOssForCausalLM", [sliding, full])
    assert.closeTo(max_context, kv_cache_bytes / ((10 + 0.8 * 30) * token), 2)
    const less = longest(sglangMemory, "GptOssForCausalLM", [sliding, full], { swa_full_tokens_ratio: 0.1 })
    assert.closeTo(less.max_context, kv_cache_bytes / ((10 + 0.1 * 30) * token), 8)
  })

  it("gives recurrent states a pool in proportion to the other pool, which holds no tokens", () => {
    const state: LayerGroup = { kind: "state", layers: 30, conv_values: 1_000, state_values: 1_000, state_float32: false }
    const { kv_cache_bytes, max_context } = longest(sglangMemory, "Qwen3NextForCausalLM", [state, full])
    assert.closeTo(max_context, kv_cache_bytes / (1.9 * 10 * token), 2)
  })

  it("without a prefix cache holds a window for each sequence and two chunks; the other pool gets the rest", () => {
    const limits = { disable_radix_cache: true, max_running_requests: 64, chunked_prefill_size: 4_096 }
    const held = 30 * token * (64 * (1_024 + 128 + 2) + 2 * 4_096 + 1)
    const { concurrent_sequences, kv_cache_bytes, max_context } = longest(sglangMemory, "GptOssForCausalLM", [sliding, full], limits)
    assert.strictEqual(max_context, Math.floor((kv_cache_bytes - held) / (10 * token)))
    assert.strictEqual(concurrent_sequences, 1)
    const one = longest(sglangMemory, "GptOssForCausalLM", [sliding, full], { ...limits, disable_overlap_schedule: true })
    assert.isAbove(one.max_context, max_context)
    // Without chunked prefill there is no such limit.
    const unchunked = longest(sglangMemory, "GptOssForCausalLM", [sliding, full], { ...limits, chunked_prefill_size: -1 })
    assert.closeTo(unchunked.max_context, unchunked.kv_cache_bytes / ((10 + 0.8 * 30) * token), 2)
  })

  it("without a prefix cache holds one state more than running sequences", () => {
    const state: LayerGroup = { kind: "state", layers: 30, conv_values: 24_576, state_values: 524_288, state_float32: true }
    const limits = { disable_radix_cache: true, max_running_requests: 64 }
    const held = 30 * 65 * (24_576 * 2 + 524_288 * 4)
    const of = (contextLimit: number) => longest(sglangMemory, "Qwen3NextForCausalLM", [state, full], limits, contextLimit)
    const { kv_cache_bytes, max_context } = of(100_000_000)
    const spare = kv_cache_bytes - held
    assert.closeTo(max_context, spare / (10 * token), 512)
    assert.strictEqual(of(65_536).concurrent_sequences, Math.floor(spare / (65_536 * 10 * token)))
  })
})

describe("the memory of any engine", () => {
  it("holds a latent per layer of MiniCPM3 in SGLang, but keys and values per head in vLLM: 27 times as much", () => {
    const layers: ReadonlyArray<LayerGroup> = [{ kind: "full", layers: 62, kv_heads: 40, head_size: 96, head_size_v: 96, latent_size: 288 }]
    const [ours, others] = [sglangMemory, vllmMemory("0.33.0")].map((memory) => longest(memory, "MiniCPM3ForCausalLM", layers))
    assert.deepStrictEqual([ours?.kv_bytes_per_token, others?.kv_bytes_per_token], [62 * 288 * 2, 62 * 40 * (96 + 96) * 2])
  })

  it("has an 8-bit cache if a ModelOpt checkpoint requests it, and a 16-bit cache if another checkpoint mentions it", () => {
    const asking: ModelConfig = { ...config, quantization: "modelopt", quantization_scheme: { cache_bits: 8, format: "NVFP4" } }
    for (const engine of [vllmMemory("0.33.0"), sglangMemory]) {
      assert.deepStrictEqual([engine.kvValueBytes(asking, "auto"), engine.kvValueBytes(config, "auto"), engine.kvValueBytes(config, "fp8")], [1, 2, 1])
      assert.strictEqual(engine.kvValueBytes({ ...asking, quantization: "compressed-tensors" }, "auto"), 2)
    }
  })

  it("depends on product labels of nodes: PCIe boards may have no NVLink", () => {
    const runtime = (pool: string) => vllmMemory("0.33.0").overhead(load({}, pool, 79.19, 2)).runtime
    assert.strictEqual(runtime("NVIDIA-H100-PCIe").low, runtime("NVIDIA-L40S").low)
    assert.strictEqual(runtime("NVIDIA-H100-PCIe").high, runtime("NVIDIA-H100-80GB-HBM3").high)
    assert.strictEqual(runtime("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition").high, runtime("NVIDIA RTX PRO 6000").high)
    assert.isAbove(runtime("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition").high, runtime("NVIDIA-L40S").high)
  })

  it("has room for the log-probabilities of a prompt, of which an engine computes a bounded number at once", () => {
    // One sequence and a small step: nothing else is larger.
    const small = { max_num_seqs: 1, max_num_batched_tokens: 512, enforce_eager: true, max_running_requests: 1, chunked_prefill_size: 256 }
    const after = (memory: typeof sglangMemory, gpus: number, flags: EngineLoad["flags"] = small) => {
      const tiny = { ...config, hidden_size: 64, shape: { ...qwen2Shape, intermediate_size: 64 } }
      return memory.overhead({ ...load(flags, "L4", 22.03, gpus), config: tiny }).afterPool.high
    }
    const logits = (positions: number, bytes: number) => positions * config.vocab_size * bytes
    for (const [memory, positions, bytes] of [
      [vllmMemory("0.33.0"), 512, 2],
      [sglangMemory, 256, 12]
    ] as const) {
      assert.isAtLeast(after(memory, 1), logits(positions, bytes) * 0.9)
      assert.isBelow(after(memory, 1), logits(positions, bytes) + gib)
    }
    // With two GPUs the logits are gathered: 2.5 copies.
    assert.isAtLeast(after(vllmMemory("0.33.0"), 2), logits(512, 2) * 2.4)
    // A larger step does not compute more than 1,024 positions at once.
    assert.isBelow(after(vllmMemory("0.33.0"), 1, { ...small, max_num_batched_tokens: 16_384 }), logits(1_024, 2) * 1.2)
  })

  const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
  it.prop(
    "consists of intervals of numbers for every card, version and limit",
    [int(1, 300), Schema.Literals([1, 2, 4, 8]), int(0, 40), int(1, 4_096), int(1, 65_536), Schema.Literals(["H100", "A10", "GB10", "Other"])],
    ([memory, gpus, minor, sequences, tokens, pool]) =>
      [vllmMemory(`0.${minor}.0`), sglangMemory].every((engine) => {
        const limited = load({ max_num_seqs: sequences, max_num_batched_tokens: tokens, chunked_prefill_size: tokens }, pool, memory, gpus)
        const { activation, afterPool, graphs, runtime } = engine.overhead(limited)
        const budget = engine.budget(limited)
        return (
          [activation, afterPool, graphs, runtime].every(({ high, low }) => Number.isFinite(high) && low >= 0 && low <= high) &&
          budget > 0 &&
          budget <= memory * gib &&
          engine.stepTokens(limited) >= 1
        )
      })
  )
})
