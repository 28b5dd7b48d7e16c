import { assert, describe, it } from "@effect/vitest"
import {
  derivePreview,
  type HostClass,
  leastContext,
  type ModelConfig,
  type Preview,
  type Runtime,
  type ServingRequest,
  servingProblem,
  shapeOf
} from "@seatrial/domain"
import { llama8bConfig } from "../../../test/models/modelConfigs.ts"
import { engines } from "../src/index.ts"
import { factsOf } from "./anyModel.ts"

const hostClass = (name: string, runtimes: readonly [Runtime, ...ReadonlyArray<Runtime>], gpu_pool: string, gib: number, price: string): HostClass => {
  const [first, ...others] = runtimes.map((runtime) => ({ runtime, image: "i" }))
  const offered = first === undefined ? assert.fail("no runtime") : ([first, ...others] as const)
  return { name, runtimes: offered, gpu_pool, gpu_count: 1, gpu_memory_bytes: gib * 2 ** 30, price_per_gpu_hour_micros: price, simulated: false }
}
const h100 = hostClass("h100", ["vllm"], "NVIDIA-H100-80GB-HBM3", 79, "9")
const small = hostClass("small", ["reference"], "any", 4, "1")

const llama: ModelConfig = {
  ...llama8bConfig,
  rope: {
    parameters: { rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8_192, rope_theta: 500_000 },
    nested: false,
    max_positions: 8_192
  }
}
const facts = (config: Partial<ModelConfig> = {}) => factsOf({ ...llama, ...config })
const preview = (request: ServingRequest, hostClasses: ReadonlyArray<HostClass> = [h100], of = facts()) =>
  derivePreview({ facts: of, ref: null, request, hostClasses, engines })

const refused = (answer: Preview) => (answer.kind === "refused" ? answer : assert.fail("it was derived"))
/** The settings of a remedy can be sent unchanged. */
const taken = (answer: Preview, hostClasses?: ReadonlyArray<HostClass>) => {
  const { remedy } = refused(answer)
  const serving = remedy.serving ?? assert.fail(`no settings: ${remedy.message}`)
  const again = preview(serving, hostClasses)
  assert.deepStrictEqual(again.kind === "derived" ? again.serving : again.reason, serving)
  return serving
}

describe("a preview predicts what a deployment does", () => {
  it("refuses a context that is too short for the trial, with and without facts of the model", () => {
    for (const max_context of [1, 16, leastContext - 1]) {
      assert.strictEqual(servingProblem({ max_context }, [h100], engines)?.param, "serving.max_context")
      assert.include(refused(preview({ max_context })).reason.message, String(leastContext))
    }
    assert.isNull(servingProblem({ max_context: leastContext }, [h100], engines))
    assert.strictEqual(preview({ max_context: leastContext }).kind, "derived")
    assert.include(refused(preview({}, [h100], facts({ native_context: 64 }))).reason.message, "supports up to 64 tokens")
  })

  it("says that an estimate was compared with no measured start, in a fit and in a refusal, for SGLang only", () => {
    for (const [runtime, expected] of [
      ["sglang", true],
      ["vllm", undefined]
    ] as const) {
      const answer = preview({}, [hostClass("h100", [runtime], h100.gpu_pool, 79, "9")])
      assert.strictEqual(answer.kind === "derived" ? answer.fit.unmeasured : null, expected)
      const { message } = refused(preview({}, [hostClass("small", [runtime], "L4", 8, "9")])).reason
      assert.strictEqual(message.endsWith("This estimate was compared with no measured start of the engine."), expected === true, message)
    }
  })

  it("refuses a configuration without a model_type, or with an unknown one, for engines that need it", () => {
    for (const runtime of ["vllm", "sglang"] as const) {
      const previewOfType = (model_type: string) => preview({ runtime }, [hostClass("h100", [runtime], h100.gpu_pool, 79, "9")], facts({ model_type }))
      const untyped = refused(previewOfType("unknown")).reason
      assert.strictEqual(untyped.code, "unsupported_architecture")
      assert.include(untyped.message, "needs a model_type")
      assert.include(
        refused(previewOfType("nonsense")).reason.message,
        'has no class for the model_type "nonsense", and neither has its version of Transformers'
      )
      // One type of the engine, and one of Transformers.
      for (const known of ["kimi_k2", "qwen3"]) assert.strictEqual(previewOfType(known).kind, "derived")
    }
    assert.strictEqual(preview({}, [h100], facts({ model_type: "unknown", architecture: "LongcatFlashForCausalLM" })).kind, "derived")
  })

  it("refuses a YaRN factor above every published one, with and without facts of the model", () => {
    assert.strictEqual(servingProblem({ yarn: { factor: 1_000_000 } }, [h100], engines)?.param, "serving.yarn.factor")
    assert.strictEqual(refused(preview({ yarn: { factor: 65 } })).reason.code, "context_too_long")
    assert.strictEqual(preview({ yarn: { factor: 64 } }).kind, "derived")
  })

  it("names the runtimes that accept what the first runtime of a host class refuses", () => {
    const both = hostClass("both", ["reference", "vllm"], "any", 79, "9")
    const problem = (request: ServingRequest, classes = [both]) => servingProblem(request, classes, engines)?.message ?? ""
    assert.match(problem({ kv_cache_dtype: "fp8" }), /^reference does not take.* Request the runtime vllm, which accepts it\.$/)
    assert.match(
      problem({ engine_flags: { enable_chunked_prefill: true } }),
      /^The runtime reference has no flag.* Request the runtime vllm, which accepts it\.$/
    )
    for (const request of [{ kv_cache_dtype: "fp8" }, { engine_flags: { enable_chunked_prefill: true } }] as const) {
      assert.isNull(servingProblem({ ...request, runtime: "vllm" }, [both], engines))
      assert.notInclude(problem(request, [small]), "Request the runtime")
      assert.notInclude(problem({ ...request, runtime: "reference" }), "Request the runtime")
    }
    assert.notInclude(problem({ engine_flags: { trust_remote_code: true } }), "Request the runtime")
  })

  it("proposes no YaRN if the model has the shorter context without it", () => {
    const answer = preview({ max_context: 131_072, yarn: { factor: 2 } })
    const serving = taken(answer)
    assert.strictEqual(serving.max_context, 131_072)
    assert.notProperty(serving, "yarn")
    assert.match(refused(answer).remedy.message, /^Omit yarn/)
    assert.match(refused(preview({ max_context: 262_144, yarn: { factor: 20 } })).remedy.message, /the factor of yarn to 32/)
  })

  it("without chunked prefill chooses a context that a step can hold, and distinguishes a requested context from flags", () => {
    const derived = preview({ engine_flags: { enable_chunked_prefill: false } })
    assert.strictEqual(derived.kind === "derived" ? derived.serving.max_context : refused(derived).reason.message, 65_536)
    const answer = preview({ max_context: 131_072, engine_flags: { enable_chunked_prefill: false, seed: 7 } })
    assert.match(refused(answer).remedy.message, /enable_chunked_prefill.*context of 65536 tokens/)
    assert.deepInclude(taken(answer), { max_context: 131_072 })
    assert.include(taken(answer).engine_flags, { seed: 7 })
  })

  it("shows no more sequences than the engine runs at once", () => {
    const answer = preview({ max_context: 256, engine_flags: { max_num_seqs: 8 } })
    assert.strictEqual(answer.kind === "derived" ? answer.fit.concurrent_sequences : 0, 8)
  })

  it("is tight if memory limits the context to a few messages, and a refusal if no trial fits", () => {
    const weights = facts().weights_bytes
    let [refusals, tights] = [0, 0]
    for (let mib = 0; mib < 2_048; mib += 16) {
      const memory = (weights + 4 * 2 ** 30 + mib * 2 ** 20) / 2 ** 30
      for (const runtime of ["vllm", "sglang"] as const) {
        const answer = preview({}, [hostClass("card", [runtime], "NVIDIA-L4", memory, "1")])
        if (answer.kind === "refused") refusals++
        else {
          assert.isAtLeast(answer.fit.max_context, leastContext)
          if (answer.fit.max_context < 2_048) assert.strictEqual(answer.fit.verdict, "tight")
          if (answer.fit.verdict === "tight") tights++
        }
      }
    }
    assert.isAbove(refusals, 0)
    assert.isAbove(tights, 0)
  })

  it("chooses a context that the reference engine reads in time on a quarter of a core, and refuses one that a full core cannot read", () => {
    const tiny = { num_layers: 4, hidden_size: 128, num_attention_heads: 4, num_kv_heads: 2, head_dim: 32, vocab_size: 512, native_context: 1_024 }
    const rope = { parameters: { rope_type: "default", rope_theta: 10_000 }, nested: false, max_positions: 1_024 }
    const of = (config = tiny) => ({ ...facts({ ...config, rope }), weights_bytes: 1_444_096, parameters: 722_048 })
    const chosen = (request: ServingRequest, hostClass: HostClass, config = tiny) => {
      const answer = preview(request, [hostClass], of(config))
      return answer.kind === "derived" ? answer.serving.max_context : assert.fail(answer.reason.message)
    }
    const computed = chosen({ runtime: "reference", yarn: { factor: 64 } }, small)
    // 512 x N x N products at 0.25 billion per second within 60 s + N / 300.
    assert.isAtMost((512 * computed ** 2) / 0.25e9, 60 + computed / 300)
    assert.isAbove(computed, 4_096)
    assert.strictEqual(chosen({ yarn: { factor: 64 } }, { ...h100, simulated: true }), computed)
    assert.strictEqual(chosen({ yarn: { factor: 64 } }, h100), 65_536)
    // The same with a native context of this length.
    const long = { ...tiny, native_context: 65_536 }
    assert.strictEqual(chosen({ runtime: "reference" }, small, long), computed)
    assert.strictEqual(chosen({}, h100, long), 65_536)
    // A longer context is refused if no other class can compute it, and the settings of the remedy are accepted.
    const requested = { max_context: 65_536 }
    for (const simulated of [small, { ...h100, simulated: true }]) {
      const { reason, remedy } = refused(preview(requested, [simulated], of(long)))
      assert.strictEqual(reason.code, "context_too_long")
      const most = Number(/at most (\d+) tokens/.exec(reason.message)?.[1])
      assert.isAtMost((512 * most ** 2) / 1e9, 60 + most / 300)
      assert.isAbove(most, 2 * computed)
      const { serving } = remedy
      assert.isAtMost(serving?.max_context ?? 0, most)
      assert.strictEqual(preview(serving ?? {}, [simulated], of(long)).kind, "derived")
      // A requested context is accepted if one idle core can read it in time.
      assert.strictEqual(chosen({ max_context: most }, simulated, long), most)
    }
    const elsewhere = preview(requested, [small, h100], of(long))
    assert.strictEqual(elsewhere.kind === "derived" ? elsewhere.serving.host_class : elsewhere.reason.message, "h100")
    // YaRN is not proposed for a context that no class can compute in time.
    const { config } = facts({ ...tiny, native_context: 16_384, rope: { ...rope, max_positions: 16_384 } })
    const proposed = (on: HostClass) => refused(preview(requested, [on], { ...of(), config })).remedy.message
    assert.notInclude(proposed(small), "yarn")
    assert.include(proposed(h100), "or extend the model's context with yarn (factor 4)")
    // A context that is short enough stays.
    assert.strictEqual(chosen({ runtime: "reference", yarn: { factor: 4 } }, small), 4_096)
    assert.strictEqual(chosen({ runtime: "reference" }, small), 1_024)
  })

  it("chooses a context in which the reference engine has time for the weights of a real model, too", () => {
    // SmolLM2-135M, whose weights take longer than its attention.
    const smol = {
      ...{ num_layers: 30, hidden_size: 576, num_attention_heads: 9, num_kv_heads: 3, head_dim: 64, vocab_size: 49_152, native_context: 8_192 },
      shape: {
        layers: [{ kind: "full", layers: 30, kv_heads: 3, head_size: 64, head_size_v: 64 }],
        ...{ intermediate_size: 1_536, experts: null, vision: null, tied_embeddings: true, softcapped_logits: false }
      }
    } as const
    const of = { ...facts(smol), weights_bytes: 269_030_016, parameters: 134_515_008 }
    const answer = preview({ runtime: "reference" }, [small], of)
    const chosen = answer.kind === "derived" ? answer.serving.max_context : assert.fail(answer.reason.message)
    // 106 million weights at 0.625 billion per second, and 17,280 x N x N products at 0.25 billion per second.
    assert.isAtMost((chosen * 106.2e6) / 0.625e9 + (17_280 * chosen ** 2) / 0.25e9, 60 + chosen / 300)
    assert.isAbove(chosen, 256)
    const most = Number(/at most (\d+) tokens/.exec(refused(preview({ runtime: "reference", max_context: 8_192 }, [small], of)).reason.message)?.[1])
    assert.isAtMost((most * 106.2e6) / 2.5e9 + (17_280 * most ** 2) / 1e9, 60 + most / 300)
    assert.isAbove(most, 2 * chosen)
  })

  it("counts only host classes with the requested runtime, and offers the other runtime", () => {
    const answer = preview({ runtime: "reference" }, [small, h100])
    assert.include(refused(answer).reason.message, "with the runtime reference (the largest has 4.0 GiB)")
    assert.deepInclude(taken(answer, [small, h100]), { runtime: "vllm", host_class: "h100" })
  })

  it.each([
    ["another activation", { activation: "relu2", attention_bias: false, mlp_bias: false, rope: "default" }, /hidden_act 'relu2'; only silu/],
    ["biases of attention", { activation: "silu", attention_bias: true, mlp_bias: false, rope: "default" }, /attention_bias/],
    ["biases of the feed-forward layers", { activation: "silu", attention_bias: false, mlp_bias: true, rope: "default" }, /mlp_bias/],
    [
      "heads that turn in part",
      { activation: "silu", attention_bias: false, mlp_bias: false, rope: "default", partial_rotary_factor: 0.5 },
      /partial_rotary_factor 0\.5; only 1/
    ],
    [
      "weights of other types",
      { activation: "silu", attention_bias: false, mlp_bias: false, rope: "default", types: ["F64", "F8_E4M3"] },
      /weights of the type F64, F8_E4M3; only F32, BF16 and F16/
    ],
    [
      "dynamic positions",
      { activation: "silu", attention_bias: false, mlp_bias: false, rope: "dynamic" },
      /rope scaling 'dynamic' is not supported; the supported kinds are default, linear, llama3, yarn\./
    ]
  ])("%s: the reference engine refuses in the preview what its loader would refuse", (_, computation, message) => {
    const { rope: __, ...plain } = llama
    const of = { ...facts(), config: { ...plain, computation }, weights_bytes: 2 ** 20 }
    const answer = refused(preview({ runtime: "reference" }, [small, h100], of))
    assert.match(answer.reason.message, message)
    // vLLM computes it.
    assert.strictEqual(answer.remedy.serving?.runtime, "vllm")
    const silu = { ...of, config: { ...of.config, computation: { activation: "silu", attention_bias: false, mlp_bias: false, rope: "default" } } }
    assert.strictEqual(preview({ runtime: "reference", max_context: 128 }, [small], silu).kind, "derived")
  })

  it("refuses sliding-window layers only if the reference engine computes", () => {
    const shape = shapeOf(llama)
    const windowed = facts({
      shape: { ...shape, layers: shape.layers.map((group) => (group.kind === "full" ? { ...group, kind: "sliding", window: 512 } : group)) }
    })
    for (const hostClass of [
      { ...h100, simulated: true },
      { ...small, gpu_memory_bytes: 64 * 2 ** 30 }
    ])
      assert.match(refused(preview({}, [hostClass], windowed)).reason.message, /layers with a sliding window, which are not supported/)
    assert.strictEqual(preview({}, [h100], windowed).kind, "derived")
  })

  it("sends a Qwen 3 body without the prefix of its tensors to SGLang, which adds the prefix", () => {
    const bare = facts({ architecture: "Qwen3ForCausalLM", model_type: "qwen3", bare_names: true })
    const both = hostClass("both", ["vllm", "sglang"], h100.gpu_pool, 79, "9")
    const { reason, remedy } = refused(preview({}, [both], bare))
    assert.match(reason.message, /cannot load tensors of Qwen3ForCausalLM whose names do not begin with model\./)
    assert.strictEqual(remedy.serving?.runtime, "sglang")
    assert.strictEqual(preview({}, [both], facts({ architecture: "Qwen3ForCausalLM", model_type: "qwen3" })).kind, "derived")
  })

  it.each([
    ["{% if messages %}a", true],
    ["{% if %}", true],
    ["{{ messages", true],
    ["{{ messages | nofilter }}", true],
    ["{{ messages | map(attribute='content') | join(', ') | nofilter(1) }}", true],
    ["{# no end", true],
    ["{{ bos_token }}{{ raise_exception('never') | trim }}{{ messages[0].content }}", true],
    ["{% if tools %}{{ raise_exception('a') }}{% elif messages %}b{{ raise_exception('c') }}{% else %}{{ raise_exception('d') }}{% endif %}", true],
    ["{% if tools %}{{ raise_exception('no tools') }}{% endif %}{{ messages[0].content }}", false],
    ["{% for m in messages %}{{ raise_exception('odd') }}{% endfor %}", false],
    ["{% for m in messages %}{{ m.content | trim | tojson(indent=2) }}{% endfor %}", false],
    ["{% generation %}{{ 7 // 2 }}{% endgeneration %}", false]
  ] as const)("a chat template that no engine compiles is refused by name: %s", (chat_template, broken) => {
    const real = preview({}, [h100], { ...facts(), chat_template })
    assert.strictEqual(real.kind, broken ? "refused" : "derived")
    if (broken) assert.match(refused(real).reason.message, /^The chat template of any\/model cannot be used: /)
  })

  it("refuses a tokenizer without tokenizer.json if the reference engine would read it, and names another runtime", () => {
    const file = { path: "tokenizer.model", size: 1, blob_id: "b", sha256: null }
    const of = { ...facts(), files: [file] }
    const cheap = { ...small, gpu_memory_bytes: 64 * 2 ** 30 }
    const own = refused(preview({ runtime: "reference" }, [cheap, h100], of))
    assert.strictEqual(own.reason.code, "unsupported_format")
    assert.match(own.reason.message, /reads only tokenizer\.json, and the repository has only tokenizer\.model/)
    assert.strictEqual(own.remedy.serving?.runtime, "vllm")
    const chosen = preview({}, [cheap, h100], of)
    assert.strictEqual(chosen.kind === "derived" ? chosen.serving.runtime : chosen.reason.message, "vllm")
    assert.strictEqual(preview({}, [{ ...h100, simulated: true }], of).kind, "refused")
    assert.strictEqual(preview({}, [cheap], { ...of, files: [file, { ...file, path: "tokenizer.json" }] }).kind, "derived")
  })

  it("refuses a chat template beyond the preview's parser only if the engine uses the same parser", () => {
    for (const chat_template of ["{% raw %}{{ {% endraw %}", "{% include 'a' %}"]) {
      assert.strictEqual(preview({}, [h100], { ...facts(), chat_template }).kind, "derived")
      const simulated = { ...h100, name: "simulated", price_per_gpu_hour_micros: "1", simulated: true }
      assert.strictEqual(preview({}, [simulated], { ...facts(), chat_template }).kind, "refused")
      // The cheaper class is skipped. If the request names it, it is refused and another one is proposed.
      const chosen = preview({}, [simulated, h100], { ...facts(), chat_template })
      assert.strictEqual(chosen.kind === "derived" ? chosen.serving.host_class : chosen.reason.message, "h100")
      const refusal = refused(preview({ host_class: "simulated" }, [simulated, h100], { ...facts(), chat_template }))
      assert.strictEqual(refusal.remedy.serving?.host_class, "h100")
    }
  })

  it("lists host classes in the same order, whatever the input order is", () => {
    const classes = [
      { ...h100, name: "b" },
      { ...small, name: "c" },
      { ...h100, name: "a" }
    ]
    assert.strictEqual(refused(preview({ host_class: "nobody" }, classes)).remedy.message, "Choose one of: a, b, c.")
  })
})
