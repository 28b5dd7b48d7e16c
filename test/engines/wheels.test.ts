import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { commandLines, engineFor, engineReadings, parseCommandLine } from "@seatrial/engines"
import { registered as sglangRegistered, ownTypes as sglangTypes } from "../../packages/engines/src/sglang/generated/architectures.ts"
import { reasoningParsers as sglangReasoning, toolCallParsers as sglangTools } from "../../packages/engines/src/sglang/generated/commandLine.ts"
import { registeredQuantizations as sglangQuantizations } from "../../packages/engines/src/sglang/generated/quantizations.ts"
import { adaptable } from "../../packages/engines/src/vllm/generated/adaptable.ts"
import { registered as vllmRegistered, ownTypes as vllmTypes } from "../../packages/engines/src/vllm/generated/architectures.ts"
import { reasoningParsers as vllmReasoning, toolCallParsers as vllmTools } from "../../packages/engines/src/vllm/generated/commandLine.ts"
import { registeredQuantizations as vllmQuantizations } from "../../packages/engines/src/vllm/generated/quantizations.ts"
import { values } from "../../packages/engines/test/flagTables.ts"
import { adaptableOf, commandLineOf, missingIn, quantizationsOf, readWheel, registeredOf } from "../../tools/engines/readWheel.ts"
import { qwen3Config } from "../models/modelConfigs.ts"

/** Folder of the wheels: 400 MB that survive a checkout. */
const folder = process.env.ENGINE_WHEELS ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "seatrial/engines")

/** The wheel of an engine version, downloaded without dependencies unless it exists. */
const wheelOf = (engine: string, version: string): string => {
  const find = () => (existsSync(folder) ? readdirSync(folder) : []).find((name) => name.startsWith(`${engine}-${version}-`) && name.endsWith(".whl"))
  if (find() === undefined) {
    mkdirSync(folder, { recursive: true })
    const platforms = ["manylinux_2_28_x86_64", "manylinux_2_34_x86_64", "any"].flatMap((platform) => ["--platform", platform])
    const options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--dest", folder, ...platforms]
    const pip = spawnSync(process.env.PYTHON ?? "python3", ["-m", "pip", "download", "--quiet", ...options, `${engine}==${version}`], { encoding: "utf8" })
    if (pip.status !== 0) throw new Error(`the wheel of ${engine} ${version} cannot be downloaded: ${pip.stderr}`)
  }
  return join(folder, find() ?? "")
}

const tables = {
  vllm: { quantizations: vllmQuantizations, foreign: "torchao", registered: vllmRegistered, types: vllmTypes, reasoning: vllmReasoning, tools: vllmTools },
  sglang: {
    quantizations: sglangQuantizations,
    foreign: "bitsandbytes",
    registered: sglangRegistered,
    types: sglangTypes,
    reasoning: sglangReasoning,
    tools: sglangTools
  }
}

/** How engines limit the length of requests: the behavior that trials check, and the refusals that the gateway parses. Some of them exist only in SGLang. */
const contextEdges = {
  vllm: { lines: [["This model's maximum context length is ", " tokens. However, your prompt contains "]], words: [] },
  sglang: {
    lines: [
      ["Input length (", " tokens) exceeds the maximum allowed length (", " tokens)"],
      ["Requested token count exceeds the model's maximum context length of ", " tokens. You requested a total of ", " tokens from the input messages"]
    ],
    words: [
      "self.model_config.context_len - 1,",
      "max_req_input_len = max_req_len - 5",
      "self.max_req_len - input_len - 1,",
      "len(req.origin_input_ids) >= max_req_input_len"
    ]
  }
}

/** How engines pass message parts and tools to chat templates. The trial renders them in the same way (`TrialOffers.templated`, `ownPrompts`). */
const templated = {
  vllm: [
    'self.use_harmony = model_config.hf_config.model_type == "gpt_oss"',
    'elif arch == "KimiK3ForConditionalGeneration":\n                self.tokenizer_mode = "kimi_k3"\n            elif arch == "DeepseekV32ForCausalLM":\n                self.tokenizer_mode = "deepseek_v32"\n            elif arch in (\n                "DeepseekV4ForCausalLM",\n                "DeepseekV4ForConditionalGeneration",\n            ):\n                self.tokenizer_mode = "deepseek_v4"\n            elif arch == "DeepseekV41ForCausalLM":\n                self.tokenizer_mode = "deepseek_v41"\n            elif arch in ("InklingForCausalLM", "InklingForConditionalGeneration"):\n                self.tokenizer_mode = "inkling"\n\n            if self.tokenizer_mode != "auto":',
    'wrap_dicts=(content_format == "openai"),',
    'text_prompt = "\\n".join(texts)',
    'if self.defer_loading is None:\n            data.pop("defer_loading", None)\n        return data'
  ],
  sglang: [
    'if tool_call_parser == "deepseekv41":\n        return "dsv41"\n    if tool_call_parser == "deepseekv4":\n        return "dsv4"\n    if tool_call_parser == "deepseekv32":\n        return "dsv32"\n    if tool_call_parser == "kimi_k3":\n        return "kimi_k3"\n\n    architectures',
    'return model_type == "deepseek_v41" or "DeepseekV41" in arch',
    'if "DeepseekV4" in arch:\n        return "dsv4"\n    if "KimiK3" in arch:\n        return "kimi_k3"\n',
    'if "InklingForConditionalGeneration" in arch:\n        return "inkling"\n\n    has_chat_template = tokenizer is not None and tokenizer.chat_template is not None\n    if "DeepseekV3" in arch and not has_chat_template:\n        return "dsv32"\n    return None',
    'MODEL_TYPE_TO_TEMPLATE = {\n    "internvl_chat": "internvl-2-5",\n    "deepseek_vl_v2": "deepseek-vl2",\n    "multi_modality": "janus-pro",\n    "phi4mm": "phi-4-mm",\n    "minicpmv": "minicpmv",\n    "minicpmo": "minicpmo",\n    "moss_vl": "moss-vl",\n    "deepseek-ocr": "deepseek-ocr",\n    "unlimited-ocr": "unlimited-ocr",\n    "paddleocr_vl": "paddle-ocr",\n    "whisper": "whisper",\n}',
    're.search(r"\\bpoints\\b", model_path, re.IGNORECASE)',
    're.search(r"moss.*vl|moss-vl", model_path, re.IGNORECASE)',
    're.search(r"internvl", model_path, re.IGNORECASE)',
    're.search(r"janus", model_path, re.IGNORECASE)',
    're.search(r"vicuna|llava-v1\\.5|llava-next-video-7b", model_path, re.IGNORECASE)',
    're.search(r"deepseek.*vl2", model_path, re.IGNORECASE)',
    'r"llava-v1\\.6-34b|llava-v1\\.6-yi-34b|llava-next-video-34b|llava-onevision-qwen2"',
    're.search(r"minicpm-(v|o)-4[._][67]", model_path, re.IGNORECASE)',
    ...["phi-4-multimodal", "deepseek-ocr", "unlimited", "paddleocr", "whisper"].map((word) => `if "${word}" in model_path.lower():`),
    '"add_generation_prompt is supported only with a Jinja chat template."',
    'new_msg["content"] = " ".join(text_parts) if text_parts else ""',
    "tools = [item.model_dump() for item in request.tools]",
    "    function: Function\n    defer_loading: Optional[bool] = None\n\n    @model_validator"
  ]
}

/** The sources of the rules in `startIssue.ts`: start messages of the engine, and the conditions in its source code. */
const refusals = {
  vllm: {
    lines: [
      ["The model type ", " does not support float16."],
      ["Bfloat16 is only supported on GPUs with compute capability of at least 8.0."],
      ["Selected backend ", " is not valid for this configuration."],
      ["VLLM batch_invariant mode is not supported for "],
      ["sink not supported on compute capability < 9.0"],
      ["FP8 KV cache requires FA3 on SM90, FA4 with head_size=512 on SM90, or FA4 on SM100"],
      ["FP8 KV cache is not supported by the Triton attention backend"]
    ],
    words: [
      '_FLOAT16_NOT_SUPPORTED_MODELS = {\n    "gemma2": ',
      "return [64, 128, 256, 512]",
      "return head_size >= 32",
      "MLA not supported",
      "attention sinks not supported",
      "batch invariance not supported",
      // The groups of layers in `kvCache.ts`, and the steps under way in `memory.ts`.
      "if max_num_layers < min_num_layers * 1.5:\n        # If the number of layers is not much larger",
      "num_padding_layers = group_size - len(layers) % group_size",
      "if max_page_size % layer_page_size == 0:",
      "self.max_concurrent_batches * self.scheduler_config.max_num_batched_tokens",
      'MM_PREFIX_LM_MODELS = (\n            "bagel",\n            "gemma3",\n            "molmo2",\n            "moondream3",\n            "paligemma",\n        )'
    ]
  },
  sglang: {
    lines: [
      ["SGLang only supports sm75 and above."],
      ["FlashAttention v3 Backend requires SM>=80 and SM<=90."],
      ["trtllm_mha backend can only be used with non-MLA models."],
      ["TRTLLM MHA backend for prefill requires Hopper (SM90), Blackwell (SM100), or SM120 GPUs."],
      ["TRTLLM FMHAv2 prefill on SM120 does not support fp8_e4m3 KV cache"],
      ["Deterministic inference with absorbed-MLA models on the fa4 attention backend requires SM100/SM110"]
    ],
    words: [
      // The memory of windows and states in `memory.ts`.
      'hybrid_swa_archs = {\n        "BeamForCausalLM",\n        "Llama4ForConditionalGeneration",\n',
      '        "LagunaForCausalLM",\n        "MellumForCausalLM",\n        "MuseGlimmerForCausalLM",\n        "MuseGlimmerForConditionalGeneration",\n',
      'SWA_SINK_ARCHS = frozenset(\n    {\n        "GptOssForCausalLM",\n        "GraniteSWAForCausalLM",\n        "GraniteMoeSWAForCausalLM",\n        "IQuestQ1ForCausalLM",\n',
      "+ self._swa_full_tokens_ratio * self._swa_cell_bytes()",
      "--swa-full-tokens-ratio should be in range (0, 1.0].",
      "/ (1 + get_schedule().mamba_full_memory_ratio)",
      "            per_request * num_reqs\n            + chunks_in_flight * get_schedule().chunked_prefill_size\n            + page_size",
      "trailing_tokens = window + eviction_interval * draft_tokens + page_size",
      "SGLANG_SWA_EVICTION_INTERVAL = EnvInt(128)",
      "(get_schedule().max_mamba_cache_size + 1) * (stage_per_req + extra_per_slot)",
      'help="The ratio of mamba state memory to full kv cache memory.",\n            resolvable=True,\n            fallback=0.9,',
      'RADIX_SUPPORTED_DETERMINISTIC_ATTENTION_BACKEND = ["ascend", "fa3", "fa4", "triton"]',
      "is not supported for the current GPU. "
    ]
  }
}

for (const runtime of ["vllm", "sglang"] as const) {
  const engine = engineFor(runtime)
  if (engine === undefined) throw new Error(`there is no ${runtime}`)
  const wheel = wheelOf(runtime, engine.version.slice(runtime.length + 1))
  const read = readWheel(wheel)
  const known = commandLineOf(read)
  const container = (flags: Readonly<Record<string, unknown>>, dtype: "auto" | "fp8" = "auto") =>
    engine.container({
      settings: {
        runtime,
        host_class: "h100",
        max_context: 8_192,
        kv_cache_dtype: dtype,
        engine_flags: JSON.parse(JSON.stringify(flags)),
        yarn: { factor: 2 }
      },
      config: qwen3Config,
      servedNames: ["org/model", "model"],
      modelPath: "/models/m",
      hostClass: { gpu_pool: "NVIDIA-H100-80GB-HBM3", gpu_count: 2, gpu_memory_bytes: 80 * 2 ** 30 },
      bootSeconds: 600,
      cachePath: "/cache"
    })

  describe(`the wheel of ${engine.version}`, () => {
    it("has that version, and registers every claimed architecture as claimed", () => {
      assert.strictEqual(`${read.engine}-${read.version}`, engine.version)
      assert.deepStrictEqual(read.not_found, [])
      assert.deepStrictEqual(registeredOf(read), { ...tables[runtime].registered })
      for (const architecture of engine.architectures) assert.include(["text", "multimodal"], read.architectures[architecture])
      assert.isAbove(engine.architectures.size, 150)
      assert.deepStrictEqual([...tables[runtime].types].toSorted(), read.types.toSorted())
    })

    it("registers the quantization methods with their GPUs, and lacks the package of the method that is refused for it", () => {
      assert.deepStrictEqual({ ...tables[runtime].quantizations }, quantizationsOf(read))
      if (runtime === "vllm") assert.deepStrictEqual({ ...adaptable }, adaptableOf(read))
      assert.isAbove(Object.keys(read.quantizations).length, 20)
      assert.notInclude(read.packages, tables[runtime].foreign)
      assert.include(read.packages, "compressed-tensors")
      assert.property(read.quantizations, tables[runtime].foreign)
    })

    it("accepts every argument that is passed or allowed, with its type and choices", () => {
      assert.deepStrictEqual(commandLines[runtime], known)
      const choices = Object.entries(values[runtime] ?? {}).flatMap(([flag, [taken, refused]]) => {
        const listed = /must be one of (.*)\.$/.exec(engine.flagIssue({ [flag]: refused })?.message ?? "")?.[1]?.split(", ") ?? []
        return [{ [flag]: taken }, ...(typeof taken === "string" ? listed.map((choice) => ({ [flag]: choice })) : [])]
      })
      assert.isAbove(choices.length, 100)
      for (const flags of choices) {
        assert.instanceOf(parseCommandLine(known, container(flags, "fp8").args), Map)
      }
    })

    if (runtime === "vllm") {
      it("parses each argument as intended, with both model names and the argument after them", () => {
        const { args, command } = container({ enable_prefix_caching: false })
        const words = [...command.slice(1), ...args]
        const kinds = Object.fromEntries(Object.entries(known).map(([name, argument]) => [name, typeof argument === "string" ? argument : "text"]))
        const program = join(import.meta.dirname, "parse_words.py")
        const parsed = spawnSync(process.env.PYTHON ?? "python3", [program, wheel], { encoding: "utf8", input: JSON.stringify({ arguments: kinds, words }) })
        assert.strictEqual(parsed.status, 0, parsed.stderr)
        assert.deepInclude(JSON.parse(parsed.stdout), {
          subparser: "serve",
          model_tag: "/models/m",
          served_model_name: ["org/model", "model"],
          host: "$(POD_IP)",
          port: "8000",
          max_model_len: "8192"
        })
      })
    }

    it("has the parsers of reasoning and tool calls", () => {
      assert.deepStrictEqual([...tables[runtime].reasoning], read.parsers.reasoning.toSorted())
      assert.deepStrictEqual([...tables[runtime].tools], read.parsers.tools.toSorted())
    })

    it("refuses what a preview refuses because of the GPU or the model", () => {
      assert.deepStrictEqual(missingIn(wheel, refusals[runtime]), { lines: [], words: [] })
    })

    it("has every log line, metric and path that is read, and every environment variable that is set", () => {
      const { lines, metrics, paths } = engineReadings[runtime]
      // Environment variables of the processes that it starts, and of its packages.
      const foreign = new Set(["HF_HUB_OFFLINE"])
      const edge = contextEdges[runtime]
      const words = [...metrics, ...paths, ...edge.words, ...templated[runtime], ...Object.keys(container({ batch_invariant: true }).env)].filter(
        (word) => !foreign.has(word)
      )
      assert.deepStrictEqual(missingIn(wheel, { lines: [...lines, ...edge.lines], words }), { lines: [], words: [] })
      // A text that does not exist is reported as missing.
      assert.deepStrictEqual(missingIn(wheel, { lines: [["no such", "line"]], words: ["no_such_word_at_all"] }), {
        lines: [["no such", "line"]],
        words: ["no_such_word_at_all"]
      })
    })
  })
}

describe("a wheel that lacks expected files and definitions", () => {
  const archive = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in json.load(sys.stdin).items():
        wheel.writestr(name, text)
`
  const readArchive = (engine: string, files: Readonly<Record<string, string>>) => {
    const path = join(mkdtempSync(join(tmpdir(), "seatrial-wheel-")), `${engine}-9.0.0-py3-none-any.whl`)
    const written = spawnSync(process.env.PYTHON ?? "python3", ["-c", archive, path], { encoding: "utf8", input: JSON.stringify(files) })
    assert.strictEqual(written.status, 0, written.stderr)
    return readWheel(path)
  }

  it("is read as far as possible, and everything else is named", () => {
    const vllm = readArchive("vllm", {
      "vllm/engine/arg_utils.py": 'class EngineArgs:\n    def add_cli_args(parser):\n        parser.add_argument("--model", type=int)\n',
      "vllm/model_executor/models/registry.py": '_TEXT_GENERATION_MODELS = {"NewForCausalLM": ("new", "NewForCausalLM")}\n',
      "vllm-9.0.0.dist-info/METADATA": "Requires-Dist: torch\n"
    })
    assert.deepStrictEqual([vllm.architectures, vllm.packages], [{ NewForCausalLM: "text" }, ["torch"]])
    assert.deepInclude(vllm.arguments, { "--model": { kind: "integer" } })
    assert.includeMembers(
      [...vllm.not_found],
      ["AsyncEngineArgs", "FrontendArgs", "_MULTIMODAL_MODELS", "vllm/tool_parsers/__init__.py", "QuantizationMethods", "get_quantization_config"]
    )
    assert.notInclude(vllm.not_found, "EngineArgs")
  })

  it("of SGLang is read in the same way", () => {
    const sglang = readArchive("sglang", { "sglang/srt/models/new.py": "class NewForCausalLM: pass\nEntryClass = NewForCausalLM\n" })
    assert.deepStrictEqual(sglang.architectures, { NewForCausalLM: "text" })
    assert.includeMembers(
      [...sglang.not_found],
      ["sglang/srt/server_args.py", "multimodal_model_archs", "DetectorMap", "BASE_QUANTIZATION_METHODS", "METADATA"]
    )
  })
})

it("the tables of defaults and names of configuration classes match Transformers 5.23.0", () => {
  const path = (name: string) => join(import.meta.dirname, "../..", name)
  const program = path("tools/engines/read_configurations.py")
  const tables = [
    [[], "packages/hub/src/generated/configurationDefaults.ts"],
    [["--types"], "packages/engines/src/generated/transformersTypes.ts"]
  ] as const
  for (const [options, file] of tables) {
    const read = spawnSync(process.env.PYTHON ?? "python3", [program, wheelOf("transformers", "5.23.0"), ...options], { encoding: "utf8" })
    assert.strictEqual(read.stderr, "")
    assert.strictEqual(read.stdout, readFileSync(path(file), "utf8"))
  }
})
