import { assert, describe, it } from "@effect/vitest"
import type { ModelConfig, ServingSettings } from "@seatrial/domain"
import { commandLines, type EngineAdapter, engineReadings, parseCommandLine, versionOn } from "../src/index.ts"
import { denied, values } from "./flagTables.ts"
import { found } from "./realEngine.ts"

const both = [
  ["vllm", found("vllm")],
  ["sglang", found("sglang")]
] as const

const config: ModelConfig = {
  architecture: "Qwen3ForCausalLM",
  model_type: "qwen3",
  num_layers: 28,
  hidden_size: 1024,
  num_attention_heads: 16,
  num_kv_heads: 8,
  head_dim: 128,
  vocab_size: 151_936,
  native_context: 40_960,
  sliding_window: null,
  dtype: "bfloat16",
  quantization: "none",
  rope: { parameters: { rope_theta: 1_000_000, rope_type: "default" }, nested: false, max_positions: 40_960 }
}
const card = { gpu_pool: "NVIDIA-H100-80GB-HBM3", gpu_count: 2, gpu_memory_bytes: 80 * 2 ** 30 }
const loadOf = (flags: Readonly<Record<string, unknown>>, more: Partial<ModelConfig> = {}) => ({
  config: { ...config, ...more },
  flags,
  card,
  maxContext: 8_192
})
const started = (
  engine: EngineAdapter,
  settings: Partial<ServingSettings> = {},
  more: Partial<ModelConfig> = {},
  servedNames: ReadonlyArray<string> = ["org/model", "model"]
) =>
  engine.container({
    settings: { runtime: engine.runtime, host_class: "h100", max_context: 8_192, kv_cache_dtype: "auto", ...settings },
    config: { ...config, ...more },
    servedNames,
    modelPath: "/models/org/model/commit",
    hostClass: card,
    bootSeconds: 600,
    cachePath: "/cache"
  })

for (const [runtime, engine] of both) {
  const known = commandLines[runtime]
  const refusalOf = (flag: string, value: unknown = true) => engine.flagIssue({ [flag]: value })

  describe(`${engine.version}: what goes to it`, () => {
    it("each argument is of a spelling that the engine has, whatever flags are set and whatever a model is called", () => {
      for (const [flag, [taken]] of Object.entries(values[runtime] ?? {})) {
        const { args, command } = started(engine, { engine_flags: JSON.parse(JSON.stringify({ [flag]: taken })), yarn: { factor: 2 } })
        assert.isNotEmpty(command)
        const words = args.filter((word) => word !== "org/model" && word !== "model")
        for (const word of words) assert.match(word, /^--[a-z0-9-]+(\.[a-z]+)?(=[\s\S]+)?$/, flag)
        assert.strictEqual(new Set(words.map((word) => word.split("=")[0])).size, words.length, `twice: ${args.join(" ")}`)
        const read = parseCommandLine(known, args)
        assert.instanceOf(read, Map, flag)
        assert.strictEqual(typeof read === "string" ? 0 : read.size, words.length)
      }
      // A name that looks like an argument is none of the words.
      for (const names of [
        ["org/--trust-remote-code", "--trust-remote-code"],
        ["--trust-remote-code", "org/--trust-remote-code"]
      ]) {
        const { args } = started(engine, {}, {}, names)
        assert.notInclude(args, "--trust-remote-code")
        const read = parseCommandLine(known, args)
        const expected = runtime === "vllm" ? names.map((name) => (name.startsWith("-") ? "model" : name)) : names.slice(0, 1)
        assert.deepStrictEqual(typeof read === "string" ? read : read.get("served-model-name"), expected)
      }
    })

    it("every flag that is offered is tried here", () => {
      const offered = /takes ([a-z_0-9, ]+)\.$/.exec(refusalOf("nothing")?.message ?? "")?.[1]?.split(", ") ?? []
      assert.deepStrictEqual(offered.toSorted(), Object.keys(values[runtime] ?? {}).toSorted())
    })

    for (const [flag, [taken, refused]] of Object.entries(values[runtime] ?? {})) {
      it(`${flag} is taken within its range and refused, by its name, outside`, () => {
        assert.isNull(refusalOf(flag, taken))
        const issue = refusalOf(flag, refused)
        assert.strictEqual(issue?.flag, flag)
        assert.match(issue?.message ?? "", new RegExp(`^${flag} must be `))
      })
    }

    for (const [name, why] of Object.entries(denied)) {
      it(`${name} is refused, and it is said why`, () => {
        for (const flag of [name, name.replaceAll("-", "_"), `--${name}`, `${name.replaceAll("-", "_").toUpperCase()}`]) {
          const issue = refusalOf(flag)
          assert.strictEqual(issue?.flag, flag)
          assert.match(issue?.message ?? "", why)
        }
      })
    }

    it("the beginning of a denied argument is no way round: the engine would take it for the whole", () => {
      for (const flag of ["trust_remote", "trust-remote-c", "tool_parser_plug", "allowed_local"]) {
        assert.match(refusalOf(flag)?.message ?? "", /^\S+ is refused: .*(run code|read files)/)
      }
    })

    it("an argument of the engine that nobody reviewed is refused as that, and one that it has not is told apart; no prototype is a flag", () => {
      assert.match(refusalOf(runtime === "vllm" ? "block_size" : "radix_eviction_policy")?.message ?? "", /has not been reviewed/)
      assert.match(refusalOf("zzz_no_such")?.message ?? "", /has no such argument/)
      for (const flag of ["constructor", "__proto__", "toString"]) assert.isNotNull(engine.flagIssue(JSON.parse(`{"${flag}":1}`)))
    })

    it("sequences, tokens of a step, memory and context are said, so that no default of the card decides", () => {
      const { args } = started(engine)
      const names =
        runtime === "vllm"
          ? ["max-num-seqs", "max-num-batched-tokens", "gpu-memory-utilization", "max-model-len"]
          : ["max-running-requests", "chunked-prefill-size", "mem-fraction-static", "context-length"]
      for (const name of names)
        assert.isTrue(
          args.some((word) => word.startsWith(`--${name}=`) && /=[\d.]+$/.test(word)),
          name
        )
    })

    it("what the fit counts with is what the engine is started with", () => {
      for (const flags of [
        {},
        runtime === "vllm" ? { max_num_seqs: 7, max_num_batched_tokens: 4_096 } : { max_running_requests: 7, chunked_prefill_size: 4_096 }
      ]) {
        const { args } = started(engine, { engine_flags: flags })
        const said = (name: string) => Number(args.find((word) => word.startsWith(`--${name}=`))?.split("=")[1])
        const load = loadOf(flags)
        assert.strictEqual(said(runtime === "vllm" ? "max-num-seqs" : "max-running-requests"), engine.memory.sequences(load))
        assert.strictEqual(said(runtime === "vllm" ? "max-num-batched-tokens" : "chunked-prefill-size"), engine.memory.stepTokens(load))
      }
    })

    it("of several chat templates it takes the one that previews and the trial go by", () => {
      // SGLang would take the first; vLLM one for tools, where there is one: it is told the text then.
      assert.strictEqual(started(engine).args.includes("--hf-chat-template-name=default"), runtime === "sglang")
    })

    it("no media is fetched, no request is logged, no plug-in is loaded, only safetensors are read, and nothing is sent home", () => {
      const { args, env } = started(engine)
      assert.include(args, "--allowed-media-domains=none.invalid")
      assert.include(args, "--load-format=safetensors")
      assert.isFalse(args.some((word) => /log-requests|enable-log|trust|plugin|lora|api-key/.test(word)))
      assert.strictEqual(env[runtime === "vllm" ? "VLLM_PLUGINS" : "SGLANG_PLUGINS"], "")
      for (const forbidden of [
        "VLLM_SERVER_DEV_MODE",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING",
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
        "VLLM_USE_RUST_FRONTEND",
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
        "SGLANG_EXTERNAL_MODEL_PACKAGE",
        "SGLANG_RUST_SERVER",
        "EXA_API_KEY"
      ]) {
        assert.notProperty(env, forbidden)
      }
    })

    it("YaRN writes the checkpoint's whole dictionary, in text_config where the model has one, and raises the limit", () => {
      const parameters = { rope_theta: 5_000_000, type: "default", mrope_section: [24, 20, 20] }
      for (const nested of [true, false]) {
        const { args } = started(engine, { yarn: { factor: 4, original_context: 32_768 } }, { rope: { parameters, nested, max_positions: 40_960 } })
        const flag = runtime === "vllm" ? "--hf-overrides=" : "--json-model-override-args="
        const said = JSON.parse(args.find((word) => word.startsWith(flag))?.slice(flag.length) ?? "null")
        assert.deepStrictEqual(nested ? said.text_config : said, {
          rope_parameters: { rope_theta: 5_000_000, mrope_section: [24, 20, 20], rope_type: "yarn", factor: 4, original_max_position_embeddings: 32_768 },
          max_position_embeddings: 131_072
        })
      }
      const { rope: _, ...without } = config
      assert.deepStrictEqual([engine.extendsContext?.(config), engine.extendsContext?.(without)], [true, false])
    })

    it("an 8-bit cache has the name that the engine gives it", () => {
      for (const [ours, theirs] of [
        ["auto", "auto"],
        ["fp8", runtime === "vllm" ? "fp8" : "fp8_e4m3"],
        ["fp8_e4m3", "fp8_e4m3"]
      ] as const) {
        assert.include(started(engine, { kv_cache_dtype: ours }).args, `--kv-cache-dtype=${theirs}`)
      }
      assert.strictEqual(engine.kvCacheDtypes.has("fp8_e5m2"), runtime === "sglang")
    })
  })

  describe(`${engine.version}: what it is for`, () => {
    it("only architectures that answer in text are served, and others are told by what they are for", () => {
      for (const architecture of [
        "LlamaForCausalLM",
        "Qwen3MoeForCausalLM",
        "DeepseekV3ForCausalLM",
        "Qwen2_5_VLForConditionalGeneration",
        "GptOssForCausalLM"
      ]) {
        assert.isTrue(engine.architectures.has(architecture), architecture)
        assert.isNull(engine.otherPurpose?.(architecture) ?? null)
      }
      for (const [architecture, purpose] of [
        ["BertModel", /embeddings/],
        ["WhisperForConditionalGeneration", /speech/],
        ["Qwen3ForSequenceClassification", /classifies/],
        ["Qwen2ForRewardModel", /scores/]
      ] as const) {
        assert.isFalse(engine.architectures.has(architecture), architecture)
        assert.match(engine.otherPurpose?.(architecture) ?? "", purpose, architecture)
      }
      // Its fallback would import the repository's Python.
      assert.isFalse([...engine.architectures].some((name) => name.startsWith("Transformers")))
    })

    it("on simulated GPUs its version says so", () => {
      assert.strictEqual(versionOn(engine, { simulated: true }), `simulated-${engine.version}`)
      assert.strictEqual(versionOn(engine, { simulated: false }), engine.version)
    })

    it("the readers that are chosen are readers that it has", () => {
      const template = "{% if tools %}<tool_call>{% endif %}{{ enable_thinking }}<think>"
      const flags = engine.chosenFlags?.(loadOf({}), { chat_template: template }) ?? {}
      assert.deepInclude(flags, { reasoning_parser: "qwen3", tool_call_parser: runtime === "vllm" ? "hermes" : "qwen25" })
      assert.isNull(engine.flagIssue(flags))
      assert.notProperty(engine.chosenFlags?.(loadOf({}), { chat_template: null }) ?? {}, "reasoning_parser")
      for (const parser of engineReadings[runtime].parsers.reasoning) assert.isNull(refusalOf("reasoning_parser", parser), parser)
      for (const parser of engineReadings[runtime].parsers.toolCalls) assert.isNull(refusalOf("tool_call_parser", parser), parser)
    })

    it("a quantization on the fly is refused to a checkpoint that is quantized, experts in parallel to a model without", () => {
      const issue = (flags: Readonly<Record<string, unknown>>, more: Partial<ModelConfig> = {}) => engine.loadIssue?.(loadOf(flags, more))?.flag
      const shape = { layers: [], intermediate_size: 1, experts: null, vision: null, tied_embeddings: false, softcapped_logits: false }
      assert.strictEqual(issue({ quantization: "fp8" }, { quantization: "awq" }), "quantization")
      assert.isUndefined(issue({ quantization: "fp8" }))
      if (runtime === "vllm") {
        assert.strictEqual(issue({ enable_expert_parallel: true }, { shape }), "enable_expert_parallel")
        assert.strictEqual(issue({ max_num_seqs: 1_024, max_num_batched_tokens: 512 }), "max_num_batched_tokens")
        assert.strictEqual(issue({ enable_chunked_prefill: false, max_num_batched_tokens: 4_096 }), "enable_chunked_prefill")
        const whole = { enable_chunked_prefill: false }
        assert.isUndefined(issue({ ...engine.chosenFlags?.({ ...loadOf(whole), maxContext: 40_960 }, { chat_template: null }), ...whole }))
      } else {
        assert.strictEqual(issue({ ep_size: 2 }, { shape }), "ep_size")
        assert.strictEqual(issue({ ep_size: 3 }), "ep_size")
        assert.strictEqual(issue({ page_size: 64, chunked_prefill_size: 1_000 }), "chunked_prefill_size")
      }
    })
  })
}
