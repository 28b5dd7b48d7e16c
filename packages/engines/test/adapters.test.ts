import {
  type AdapterFacts,
  Commit,
  decideServing,
  type HostClass,
  type ModelConfig,
  type ModelShape,
  type RepositoryFacts,
  type Runtime,
  type ServingRequest
} from "@seatrial/domain"
import { describe, expect, it } from "vitest"
import { llama8bConfig, llama8bShape } from "../../../test/models/modelConfigs.ts"
import { commandLines, engineFor, engines, parseCommandLine } from "../src/index.ts"

const shape: ModelShape = llama8bShape
const config: ModelConfig = { ...llama8bConfig, native_context: 8_192, shape }
const targets = ["k_proj", "o_proj", "q_proj", "v_proj"]
const adapter: AdapterFacts = {
  base: { repo: "meta/base", commit: Commit.make("b".repeat(40)), files: [] },
  rank: 16,
  uniform: true,
  alpha: 32,
  rslora: false,
  named_by: "list",
  listed: targets,
  targets,
  unpaired: [],
  experts: false,
  bytes: 1,
  template: "base",
  content_hash: null
}

const engineOf = (runtime: Runtime) => {
  const engine = engineFor(runtime)
  if (engine?.adapters === undefined) throw new Error(`${runtime} serves no adapters`)
  return { engine, adapters: engine.adapters }
}

const mixture = { count: 8, active: 2, intermediate_size: 14_336 }
const cases: ReadonlyArray<readonly [name: string, adapter: Partial<AdapterFacts>, config: Partial<ModelConfig>, vllm: RegExp | null, sglang: RegExp | null]> =
  [
    ["attention of a dense model", {}, {}, null, null],
    ["every linear module by a list", { targets: [...targets, "down_proj", "gate_proj", "up_proj"] }, {}, null, null],
    ["every linear module by its short name", { named_by: "all", listed: [] }, {}, null, null],
    ["the largest rank", { rank: 512 }, {}, null, null],
    ["a rank that none of the limits has", { rank: 20 }, {}, null, null],
    ["a rank above the largest limit", { rank: 513 }, {}, /ranks up to 512; the adapter's is 513/, null],
    ["a scale by the rank's root", { rslora: true }, {}, null, /alpha \/ rank.*use_rslora/],
    ["several ranks", { uniform: false }, {}, null, /rank_pattern/],
    ["modules by an expression", { named_by: "pattern", listed: [] }, {}, null, /an expression/],
    [
      "values without queries",
      { targets: ["v_proj"], listed: ["v_proj"], unpaired: ["v_proj without q_proj"] },
      {},
      null,
      /does not take v_proj without q_proj/
    ],
    ["the output head", { targets: ["lm_head"], listed: ["lm_head"] }, {}, null, /to lm_head/],
    [
      "the output head of one that has no room for it",
      { targets: ["lm_head"] },
      { architecture: "Qwen2ForCausalLM" },
      /output head of Qwen2ForCausalLM/,
      /lm_head/
    ],
    ["a vocabulary beyond the wrapped head's", {}, { vocab_size: 262_144 }, /at most 258048 tokens/, null],
    ["as large a vocabulary without that head", {}, { architecture: "Gemma3ForCausalLM", vocab_size: 262_144 }, null, null],
    ["an architecture that takes none", {}, { architecture: "MambaForCausalLM" }, /applies no adapters to MambaForCausalLM/, null],
    ["single experts", { experts: true }, { architecture: "MixtralForCausalLM", shape: { ...shape, experts: mixture } }, /individual experts/, null],
    ["attention of a mixture", {}, { architecture: "MixtralForCausalLM", shape: { ...shape, experts: mixture } }, null, null],
    [
      "the ways up of a mixture",
      { targets: ["gate_proj", "up_proj"], listed: [] },
      { architecture: "MixtralForCausalLM", shape: { ...shape, experts: mixture } },
      null,
      /experts of MixtralForCausalLM/
    ],
    [
      "MLA",
      { targets: ["o_proj"], listed: [] },
      {
        architecture: "DeepseekV3ForCausalLM",
        shape: { ...shape, layers: [{ kind: "latent", layers: 61, latent_size: 576, index_bytes: 0, absorbed_values: 1 }] }
      },
      null,
      /differ in their attention/
    ],
    ["a template of its own as text", { template: "embedded" }, {}, null, /chat_template\.jinja/],
    ["a template of its own in a file", { template: "file" }, {}, null, null]
  ]

describe("which LoRA adapters an engine applies", () => {
  it.each(cases)("%s", (_, ofAdapter, ofConfig, vllm, sglang) => {
    const facts = { ...adapter, ...ofAdapter }
    const model = { ...config, ...ofConfig }
    for (const [runtime, expected] of [
      ["vllm", vllm],
      ["sglang", sglang]
    ] as const) {
      const issue = engineOf(runtime).adapters.issue(facts, model)
      if (expected === null) expect(runtime === "sglang" && ofAdapter.experts === true ? null : issue).toBeNull()
      else expect(issue).toMatch(expected)
    }
    expect(engineOf("reference").adapters.issue({ ...adapter, ...ofAdapter, experts: false }, config)).toBeNull()
  })

  it("vLLM reserves its lowest supported rank that is sufficient, SGLang the rank and a slot for requests without an adapter", () => {
    const roomFor = (runtime: Runtime, rank: number) => engineOf(runtime).adapters.buffers({ ...adapter, rank }, config)
    expect([1, 2, 8, 9, 20, 64, 65, 300, 512].map((rank) => roomFor("vllm", rank).rank)).toEqual([1, 8, 8, 16, 32, 64, 128, 320, 512])
    expect(roomFor("vllm", 8)).toMatchObject({ slots: 1, modules: "all", embeddings: true })
    expect(roomFor("sglang", 20)).toMatchObject({ slots: 2, rank: 20, modules: targets, embeddings: false })
  })
})

describe("an engine that serves an adapter", () => {
  const argsOf = (runtime: Runtime, changed: Partial<AdapterFacts> = {}) => {
    const { engine } = engineOf(runtime)
    return engine.container({
      settings: { runtime, host_class: "h", max_context: 4_096, kv_cache_dtype: "auto" },
      config,
      servedNames: ["acme/tuned", "tuned"],
      modelPath: "/models/meta/base/b",
      adapter: { facts: { ...adapter, rank: 20, ...changed }, path: "/models/acme/adapter/a", chatTemplate: "{{ '$(x) $$y$$' }}" },
      hostClass: { gpu_pool: "NVIDIA-H100-80GB-HBM3", gpu_count: 2, gpu_memory_bytes: 85_520_809_984 },
      bootSeconds: 600,
      cachePath: "/cache"
    }).args
  }

  it("gets arguments that its own parser accepts", () => {
    expect(argsOf("vllm")).toEqual(
      expect.arrayContaining([
        "--enable-lora",
        "--max-loras=1",
        "--max-lora-rank=32",
        "--lora-modules=adapter=/models/acme/adapter/a",
        "--model=/models/meta/base/b"
      ])
    )
    expect(argsOf("sglang")).toEqual(
      expect.arrayContaining([
        "--enable-lora",
        "--max-loras-per-batch=2",
        "--max-lora-rank=20",
        "--lora-paths=adapter=/models/acme/adapter/a",
        "--lora-strict-loading"
      ])
    )
    expect(argsOf("reference")).toEqual(expect.arrayContaining(["--enable-lora", "--max-lora-rank=20", "--lora-modules=adapter=/models/acme/adapter/a"]))
    for (const runtime of ["vllm", "sglang"] as const)
      for (const template of ["base", "file", "embedded"] as const)
        expect(parseCommandLine(commandLines[runtime], argsOf(runtime, { template }))).toBeInstanceOf(Map)
  })

  it("reads the chat template of the adapter from its file, or as text that Kubernetes does not change", () => {
    expect(argsOf("vllm").filter((word) => word.startsWith("--chat-template"))).toEqual([])
    expect(argsOf("vllm", { template: "file" })).toContain("--chat-template=/models/acme/adapter/a/chat_template.jinja")
    expect(argsOf("sglang", { template: "file" })).toContain("--chat-template=/models/acme/adapter/a/chat_template.jinja")
    expect(argsOf("vllm", { template: "embedded" })).toContain("--chat-template={{ '$$(x) $$$$y$$$$' }}")
  })
})

describe("a preview of an adapter", () => {
  const hostClass: HostClass = {
    name: "h100",
    runtimes: [
      { runtime: "sglang", image: "s" },
      { runtime: "vllm", image: "v" }
    ],
    gpu_pool: "NVIDIA-H100-80GB-HBM3",
    gpu_count: 1,
    gpu_memory_bytes: 85_520_809_984,
    price_per_gpu_hour_micros: "1",
    simulated: false
  }
  const decide = (changed: Partial<AdapterFacts> | null, request: ServingRequest = {}) => {
    const facts: RepositoryFacts = {
      repo: "acme/adapter",
      ref: "main",
      commit: Commit.make("a".repeat(40)),
      license: null,
      gated: false,
      files: [],
      config,
      weights_bytes: 16_060_522_496,
      parameters: 8_030_261_248,
      chat_template: null,
      ...(changed === null ? {} : { adapter: { ...adapter, ...changed } })
    }
    return decideServing({ facts, ref: null, request, hostClasses: [hostClass], engines })
  }

  it("is refused if the runtime cannot apply the adapter, with settings of a runtime that can", () => {
    const { preview } = decide({ rslora: true })
    expect(preview).toMatchObject({ kind: "refused", reason: { code: "unsupported_format" }, remedy: { serving: { runtime: "vllm", host_class: "h100" } } })
    expect(decide({ rslora: true }, preview.kind === "refused" ? (preview.remedy.serving ?? {}) : {}).preview.kind).toBe("derived")
    expect(decide({ rslora: true, rank: 1_024 }).preview).toMatchObject({ kind: "refused", remedy: { serving: null } })
  })

  it("contains the rank of the adapter and its pinned base, and no such fields for a model", () => {
    expect(decide({}).preview).toMatchObject({ kind: "derived", adapter: { rank: 16, base: { repo: "meta/base", commit: "b".repeat(40) } } })
    expect(decide(null).preview).not.toHaveProperty("adapter")
  })

  it("lists the memory of the adapter as a component, and reduces the KV cache by it", () => {
    for (const runtime of ["vllm", "sglang"] as const) {
      const [plain, tuned] = [decide(null, { runtime }), decide({}, { runtime })]
      expect(plain.estimate?.components.adapters).toEqual({ low: 0, high: 0 })
      const room = tuned.estimate?.components.adapters ?? { low: 0, high: 0 }
      expect(room.low).toBeGreaterThan(10_000_000)
      expect((plain.estimate?.components.pool.high ?? 0) - (tuned.estimate?.components.pool.high ?? 0)).toBe(room.low)
      expect(tuned.preview).toMatchObject({ kind: "derived", source: { repo: "acme/adapter" }, weights_bytes: 16_060_522_496 })
    }
  })
})
