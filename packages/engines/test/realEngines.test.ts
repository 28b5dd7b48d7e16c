import { assert, describe, it } from "@effect/vitest"
import type { ModelConfig, ServingSettings } from "@seatrial/domain"
import { qwen3Config } from "../../../test/models/modelConfigs.ts"
import { commandLines, type EngineAdapter, engineReadings, parseCommandLine, versionOn } from "../src/index.ts"
import { denied, values } from "./flagTables.ts"
import { realEngine } from "./realEngine.ts"

const both = [
  ["vllm", realEngine("vllm")],
  ["sglang", realEngine("sglang")]
] as const

const config: ModelConfig = {
  ...qwen3Config,
  rope: { ...qwen3Config.rope, parameters: { rope_theta: 1_000_000, rope_type: "default" } }
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

  describe(`${engine.version}: its arguments`, () => {
    it("are spelled as the engine expects for every flag and every model name", () => {
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
      // No name may look like an argument.
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

    it("are tested here for every flag that is offered", () => {
      const offered = /takes ([a-z_0-9, ]+)\.$/.exec(refusalOf("nothing")?.message ?? "")?.[1]?.split(", ") ?? []
      assert.deepStrictEqual(offered.toSorted(), Object.keys(values[runtime] ?? {}).toSorted())
    })

    for (const [flag, [taken, refused]] of Object.entries(values[runtime] ?? {})) {
      it(`${flag} is accepted within its range and refused by name outside of it`, () => {
        assert.isNull(refusalOf(flag, taken))
        const issue = refusalOf(flag, refused)
        assert.strictEqual(issue?.flag, flag)
        assert.match(issue?.message ?? "", new RegExp(`^${flag} must be `))
      })
    }

    for (const [name, why] of Object.entries(denied)) {
      it(`${name} is refused with a reason`, () => {
        for (const flag of [name, name.replaceAll("-", "_"), `--${name}`, `${name.replaceAll("-", "_").toUpperCase()}`]) {
          const issue = refusalOf(flag)
          assert.strictEqual(issue?.flag, flag)
          assert.match(issue?.message ?? "", why)
        }
      })
    }

    it("cannot be abbreviated to pass a denied argument", () => {
      for (const flag of ["trust_remote", "trust-remote-c", "tool_parser_plug", "allowed_local"]) {
        assert.match(refusalOf(flag)?.message ?? "", /^\S+ is refused: .*(run code|read files)/)
      }
    })

    it("that were not reviewed are distinguished from unknown ones, and no object prototype is a flag", () => {
      assert.match(refusalOf(runtime === "vllm" ? "block_size" : "radix_eviction_policy")?.message ?? "", /has not been reviewed/)
      assert.match(refusalOf("zzz_no_such")?.message ?? "", /has no such argument/)
      for (const flag of ["constructor", "__proto__", "toString"]) assert.isNotNull(engine.flagIssue(JSON.parse(`{"${flag}":1}`)))
    })

    it("always set sequences, tokens per step, memory and context, so that no default of the card applies", () => {
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

    it("start the engine with the values of the fit", () => {
      for (const flags of [
        {},
        runtime === "vllm" ? { max_num_seqs: 7, max_num_batched_tokens: 4_096 } : { max_running_requests: 7, chunked_prefill_size: 4_096 }
      ]) {
        const { args } = started(engine, { engine_flags: flags })
        const argumentOf = (name: string) => Number(args.find((word) => word.startsWith(`--${name}=`))?.split("=")[1])
        const load = loadOf(flags)
        assert.strictEqual(argumentOf(runtime === "vllm" ? "max-num-seqs" : "max-running-requests"), engine.memory.sequences(load))
        assert.strictEqual(argumentOf(runtime === "vllm" ? "max-num-batched-tokens" : "chunked-prefill-size"), engine.memory.stepTokens(load))
      }
    })

    it("select the chat template that previews and the trial use if there are several", () => {
      // SGLang would use the first template, and vLLM may use another one for tools. Therefore vLLM gets the template
      // as text.
      assert.strictEqual(started(engine).args.includes("--hf-chat-template-name=default"), runtime === "sglang")
    })

    it("prevent fetching of media, logging of requests, plug-ins, formats other than safetensors, and telemetry", () => {
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

    it("repeat the position encoding of the checkpoint for YaRN, in text_config if present, and raise the limit", () => {
      const parameters = { rope_theta: 5_000_000, type: "default", mrope_section: [24, 20, 20] }
      for (const nested of [true, false]) {
        const { args } = started(engine, { yarn: { factor: 4, original_context: 32_768 } }, { rope: { parameters, nested, max_positions: 40_960 } })
        const flag = runtime === "vllm" ? "--hf-overrides=" : "--json-model-override-args="
        const argument = JSON.parse(args.find((word) => word.startsWith(flag))?.slice(flag.length) ?? "null")
        assert.deepStrictEqual(nested ? argument.text_config : argument, {
          rope_parameters: { rope_theta: 5_000_000, mrope_section: [24, 20, 20], rope_type: "yarn", factor: 4, original_max_position_embeddings: 32_768 },
          max_position_embeddings: 131_072
        })
      }
      const { rope: _, ...without } = config
      assert.deepStrictEqual([engine.extendsContext?.(config), engine.extendsContext?.(without)], [true, false])
    })

    it("use the engine's name for an 8-bit cache", () => {
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

  describe(`${engine.version}: its models`, () => {
    it("are architectures that generate text, and other architectures are refused by their purpose", () => {
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
      // The fallback would import Python code of the repository.
      assert.isFalse([...engine.architectures].some((name) => name.startsWith("Transformers")))
    })

    it("are served by a simulated version on simulated GPUs", () => {
      assert.strictEqual(versionOn(engine, { simulated: true }), `simulated-${engine.version}`)
      assert.strictEqual(versionOn(engine, { simulated: false }), engine.version)
    })

    it("get parsers that the engine has", () => {
      const template = "{% if tools %}<tool_call>{% endif %}{{ enable_thinking }}<think>"
      const flags = engine.chosenFlags?.(loadOf({}), { chat_template: template }) ?? {}
      assert.deepInclude(flags, { reasoning_parser: "qwen3", tool_call_parser: runtime === "vllm" ? "hermes" : "qwen25" })
      assert.isNull(engine.flagIssue(flags))
      assert.notProperty(engine.chosenFlags?.(loadOf({}), { chat_template: null }) ?? {}, "reasoning_parser")
      for (const parser of engineReadings[runtime].parsers.reasoning) assert.isNull(refusalOf("reasoning_parser", parser), parser)
      for (const parser of engineReadings[runtime].parsers.toolCalls) assert.isNull(refusalOf("tool_call_parser", parser), parser)
    })

    it("cannot be quantized twice, and expert parallelism requires experts", () => {
      const issue = (flags: Readonly<Record<string, unknown>>, more: Partial<ModelConfig> = {}) => engine.loadIssue?.(loadOf(flags, more))?.flag
      const shape = { layers: [], intermediate_size: 1, experts: null, vision: null, tied_embeddings: false, softcapped_logits: false }
      assert.strictEqual(issue({ quantization: "fp8" }, { quantization: "awq" }), "quantization")
      assert.isUndefined(issue({ quantization: "fp8" }))
      if (runtime === "vllm") {
        assert.strictEqual(issue({ enable_expert_parallel: true }, { shape }), "enable_expert_parallel")
        assert.strictEqual(issue({ max_num_seqs: 1_024, max_num_batched_tokens: 512 }), "max_num_batched_tokens")
        assert.strictEqual(issue({ enable_chunked_prefill: false, max_num_batched_tokens: 4_096 }), "enable_chunked_prefill")
        const unchunked = { enable_chunked_prefill: false }
        assert.isUndefined(issue({ ...engine.chosenFlags?.({ ...loadOf(unchunked), maxContext: 40_960 }, { chat_template: null }), ...unchunked }))
      } else {
        assert.strictEqual(issue({ ep_size: 2 }, { shape }), "ep_size")
        assert.strictEqual(issue({ ep_size: 3 }), "ep_size")
        assert.strictEqual(issue({ page_size: 64, chunked_prefill_size: 1_000 }), "chunked_prefill_size")
      }
    })
  })
}
