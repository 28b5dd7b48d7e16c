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
import { engines } from "../src/index.ts"
import { factsOf, largeConfig } from "./anyModel.ts"

const hostClass = (name: string, runtimes: readonly [Runtime, ...ReadonlyArray<Runtime>], gpu_pool: string, gib: number, price: string): HostClass => {
  const [first, ...others] = runtimes.map((runtime) => ({ runtime, image: "i" }))
  const offered = first === undefined ? assert.fail("no runtime") : ([first, ...others] as const)
  return { name, runtimes: offered, gpu_pool, gpu_count: 1, gpu_memory_bytes: gib * 2 ** 30, price_per_gpu_hour_micros: price, simulated: false }
}
const h100 = hostClass("h100", ["vllm"], "NVIDIA-H100-80GB-HBM3", 79, "9")
const small = hostClass("small", ["reference"], "any", 4, "1")

const llama: ModelConfig = {
  ...largeConfig,
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
/** What a remedy holds can be sent as it is. */
const taken = (answer: Preview, hostClasses?: ReadonlyArray<HostClass>) => {
  const { remedy } = refused(answer)
  const serving = remedy.serving ?? assert.fail(`no settings: ${remedy.message}`)
  const again = preview(serving, hostClasses)
  assert.deepStrictEqual(again.kind === "derived" ? again.serving : again.reason, serving)
  return serving
}

describe("what a preview says comes true", () => {
  it("a context in which the trial cannot be asked is refused by what is least, before and with the model", () => {
    for (const max_context of [1, 16, leastContext - 1]) {
      assert.strictEqual(servingProblem({ max_context }, [h100], engines)?.param, "serving.max_context")
      assert.include(refused(preview({ max_context })).reason.message, String(leastContext))
    }
    assert.isNull(servingProblem({ max_context: leastContext }, [h100], engines))
    assert.strictEqual(preview({ max_context: leastContext }).kind, "derived")
    assert.include(refused(preview({}, [h100], facts({ native_context: 64 }))).reason.message, "made for 64 tokens")
  })

  it("a configuration needs a model_type, or with one that nobody knows, is refused by engines that find its class by it", () => {
    for (const runtime of ["vllm", "sglang"] as const) {
      const told = (model_type: string) => preview({ runtime }, [hostClass("h100", [runtime], h100.gpu_pool, 79, "9")], facts({ model_type }))
      const untyped = refused(told("unknown")).reason
      assert.strictEqual(untyped.code, "unsupported_architecture")
      assert.include(untyped.message, "needs a model_type")
      assert.include(refused(told("nonsense")).reason.message, 'has no class for the model_type "nonsense", and neither does Transformers')
      // One of the engine's own, and one of Transformers'.
      for (const known of ["kimi_k2", "qwen3"]) assert.strictEqual(told(known).kind, "derived")
    }
    assert.strictEqual(preview({}, [h100], facts({ model_type: "unknown", architecture: "LongcatFlashForCausalLM" })).kind, "derived")
  })

  it("a factor of YaRN beyond every published one is refused by its name, before and with the model", () => {
    assert.strictEqual(servingProblem({ yarn: { factor: 1_000_000 } }, [h100], engines)?.param, "serving.yarn.factor")
    assert.strictEqual(refused(preview({ yarn: { factor: 65 } })).reason.code, "context_too_long")
    assert.strictEqual(preview({ yarn: { factor: 64 } }).kind, "derived")
  })

  it("what the first runtime of a host class does not take is refused with the names of those that do", () => {
    const both = hostClass("both", ["reference", "vllm"], "any", 79, "9")
    const said = (request: ServingRequest, classes = [both]) => servingProblem(request, classes, engines)?.message ?? ""
    assert.match(said({ kv_cache_dtype: "fp8" }), /^reference does not take.* Request the runtime vllm, which accepts it\.$/)
    assert.match(said({ engine_flags: { enable_chunked_prefill: true } }), /^The runtime reference has no flag.* Request the runtime vllm, which accepts it\.$/)
    for (const request of [{ kv_cache_dtype: "fp8" }, { engine_flags: { enable_chunked_prefill: true } }] as const) {
      assert.isNull(servingProblem({ ...request, runtime: "vllm" }, [both], engines))
      assert.notInclude(said(request, [small]), "Ask for")
      assert.notInclude(said({ ...request, runtime: "reference" }), "Ask for")
    }
    assert.notInclude(said({ engine_flags: { trust_remote_code: true } }), "Ask for")
  })

  it("YaRN that makes a context shorter than asked is taken away where the model has the context without", () => {
    const answer = preview({ max_context: 131_072, yarn: { factor: 2 } })
    const serving = taken(answer)
    assert.strictEqual(serving.max_context, 131_072)
    assert.notProperty(serving, "yarn")
    assert.match(refused(answer).remedy.message, /^Omit yarn/)
    assert.match(refused(preview({ max_context: 262_144, yarn: { factor: 20 } })).remedy.message, /yarn\.factor to 32/)
  })

  it("without chunked prefill a context is chosen that a step holds; one that is asked for is told apart from flags that were not", () => {
    const derived = preview({ engine_flags: { enable_chunked_prefill: false } })
    assert.strictEqual(derived.kind === "derived" ? derived.serving.max_context : refused(derived).reason.message, 65_536)
    const answer = preview({ max_context: 131_072, engine_flags: { enable_chunked_prefill: false, seed: 7 } })
    assert.match(refused(answer).remedy.message, /enable_chunked_prefill.*max_context 65536/)
    assert.deepInclude(taken(answer), { max_context: 131_072 })
    assert.include(taken(answer).engine_flags, { seed: 7 })
  })

  it("no more sequences are told than the engine takes at once", () => {
    const answer = preview({ max_context: 256, engine_flags: { max_num_seqs: 8 } })
    assert.strictEqual(answer.kind === "derived" ? answer.fit.concurrent_sequences : 0, 8)
  })

  it("a context that memory cuts to a few messages is tight, and one that no trial fits into is refused", () => {
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

  it("a context is chosen no longer than the reference engine reads with a quarter of a core in the time that the trial waits, and one is refused that a whole core does not read", () => {
    const tiny = { num_layers: 4, hidden_size: 128, num_attention_heads: 4, num_kv_heads: 2, head_dim: 32, vocab_size: 512, native_context: 1_024 }
    const rope = { parameters: { rope_type: "default", rope_theta: 10_000 }, nested: false, max_positions: 1_024 }
    const of = (config = tiny) => ({ ...facts({ ...config, rope }), weights_bytes: 1_444_096, parameters: 722_048 })
    const chosen = (request: ServingRequest, hostClass: HostClass, config = tiny) => {
      const answer = preview(request, [hostClass], of(config))
      return answer.kind === "derived" ? answer.serving.max_context : assert.fail(answer.reason.message)
    }
    const computed = chosen({ runtime: "reference", yarn: { factor: 64 } }, small)
    // 512 x N x N products, a quarter of a billion a second, in 60 s + N / 300.
    assert.isAtMost((512 * computed ** 2) / 0.25e9, 60 + computed / 300)
    assert.isAbove(computed, 4_096)
    assert.strictEqual(chosen({ yarn: { factor: 64 } }, { ...h100, simulated: true }), computed)
    assert.strictEqual(chosen({ yarn: { factor: 64 } }, h100), 65_536)
    // So with a context that the model has of itself.
    const long = { ...tiny, native_context: 65_536 }
    assert.strictEqual(chosen({ runtime: "reference" }, small, long), computed)
    assert.strictEqual(chosen({}, h100, long), 65_536)
    // A longer one is refused where no other class computes it, and the remedy's settings are taken.
    const asked = { max_context: 65_536 }
    for (const simulated of [small, { ...h100, simulated: true }]) {
      const { reason, remedy } = refused(preview(asked, [simulated], of(long)))
      assert.strictEqual(reason.code, "context_too_long")
      const most = Number(/at most (\d+) tokens/.exec(reason.message)?.[1])
      assert.isAtMost((512 * most ** 2) / 1e9, 60 + most / 300)
      assert.isAbove(most, 2 * computed)
      const { serving } = remedy
      assert.isAtMost(serving?.max_context ?? 0, most)
      assert.strictEqual(preview(serving ?? {}, [simulated], of(long)).kind, "derived")
      // What somebody asks for is served as long as a core that is free reads it.
      assert.strictEqual(chosen({ max_context: most }, simulated, long), most)
    }
    const elsewhere = preview(asked, [small, h100], of(long))
    assert.strictEqual(elsewhere.kind === "derived" ? elsewhere.serving.host_class : elsewhere.reason.message, "h100")
    // Nor is YaRN proposed for a context that no class computes in time.
    const { config } = facts({ ...tiny, native_context: 16_384, rope: { ...rope, max_positions: 16_384 } })
    const proposed = (on: HostClass) => refused(preview(asked, [on], { ...of(), config })).remedy.message
    assert.notInclude(proposed(small), "yarn")
    assert.include(proposed(h100), "or extend it with yarn (factor 4)")
    // What is short enough stays.
    assert.strictEqual(chosen({ runtime: "reference", yarn: { factor: 4 } }, small), 4_096)
    assert.strictEqual(chosen({ runtime: "reference" }, small), 1_024)
  })

  it("room is told of the host classes that have the runtime, and another runtime's is offered", () => {
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
    ["dynamic positions", { activation: "silu", attention_bias: false, mlp_bias: false, rope: "dynamic" }, /rope scaling 'dynamic'/]
  ])("%s: the reference engine says before what its loader would say", (_, computation, message) => {
    const { rope: __, ...plain } = llama
    const of = { ...facts(), config: { ...plain, computation }, weights_bytes: 2 ** 20 }
    const answer = refused(preview({ runtime: "reference" }, [small, h100], of))
    assert.match(answer.reason.message, message)
    // vLLM computes it.
    assert.strictEqual(answer.remedy.serving?.runtime, "vllm")
    const silu = { ...of, config: { ...of.config, computation: { activation: "silu", attention_bias: false, mlp_bias: false, rope: "default" } } }
    assert.strictEqual(preview({ runtime: "reference", max_context: 128 }, [small], silu).kind, "derived")
  })

  it("layers with a window are refused where the reference engine computes, and nowhere else", () => {
    const shape = shapeOf(llama)
    const windowed = facts({
      shape: { ...shape, layers: shape.layers.map((group) => (group.kind === "full" ? { ...group, kind: "sliding", window: 512 } : group)) }
    })
    for (const hostClass of [
      { ...h100, simulated: true },
      { ...small, gpu_memory_bytes: 64 * 2 ** 30 }
    ])
      assert.match(refused(preview({}, [hostClass], windowed)).reason.message, /layers with a sliding window; only layers that see every token/)
    assert.strictEqual(preview({}, [h100], windowed).kind, "derived")
  })

  it("a Qwen 3 of which only the body was saved is sent to SGLang, which completes its tensors' names", () => {
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

  it("a tokenizer without a tokenizer.json is refused where the reference engine would read it, and another runtime is named", () => {
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

  it("a chat template in words that the engines' own parser has beyond ours is refused where ours reads it alone", () => {
    for (const chat_template of ["{% raw %}{{ {% endraw %}", "{% include 'a' %}"]) {
      assert.strictEqual(preview({}, [h100], { ...facts(), chat_template }).kind, "derived")
      const simulated = { ...h100, name: "simulated", price_per_gpu_hour_micros: "1", simulated: true }
      assert.strictEqual(preview({}, [simulated], { ...facts(), chat_template }).kind, "refused")
      // The cheaper class is passed over, and one that is named is refused for another.
      const chosen = preview({}, [simulated, h100], { ...facts(), chat_template })
      assert.strictEqual(chosen.kind === "derived" ? chosen.serving.host_class : chosen.reason.message, "h100")
      const named = refused(preview({ host_class: "simulated" }, [simulated, h100], { ...facts(), chat_template }))
      assert.strictEqual(named.remedy.serving?.host_class, "h100")
    }
  })

  it("host classes are listed in one order, whoever lists them", () => {
    const classes = [
      { ...h100, name: "b" },
      { ...small, name: "c" },
      { ...h100, name: "a" }
    ]
    assert.strictEqual(refused(preview({ host_class: "nobody" }, classes)).remedy.message, "Choose one of: a, b, c.")
  })
})
