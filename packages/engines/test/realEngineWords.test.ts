import { assert, describe, it } from "@effect/vitest"
import { engines } from "../src/index.ts"
import { sglangStartFailures } from "../src/sglang/startFailures.ts"
import { vllmStartFailures } from "../src/vllm/startFailures.ts"
import { realEngine } from "./realEngine.ts"
import { saysWhatToDo } from "./saysWhatToDo.ts"

describe("the logs of engines", () => {
  const failures: ReadonlyArray<readonly [runtime: "vllm" | "sglang", log: string, code: string, text?: RegExp]> = [
    ["vllm", "ValueError: No available memory for the cache blocks. Try increasing", "out_of_memory"],
    [
      "vllm",
      "ValueError: To serve at least one request with the model's max seq len (40960), (4.38 GiB KV cache is needed, which is larger than the available KV cache memory (2.1 GiB). Based on the available memory, the estimated maximum model length is 19600.",
      "context_does_not_fit",
      /19600/
    ],
    ["vllm", "Free memory on device cuda:0 (3.1/79.1 GiB) on startup is less than desired GPU memory utilization (0.92, 72.8 GiB).", "gpu_occupied"],
    ["vllm", "User-specified max_model_len (9) is greater than the derived max_model_len (max_position_embeddings=8)", "context_too_long"],
    ["vllm", "Model architectures ['X'] are not supported for now. Supported architectures: dict_keys(['Y'])", "unsupported_architecture"],
    ["vllm", "The repository /m contains custom code which must be executed to correctly load the model.", "remote_code_required"],
    ["vllm", "Total number of attention heads (14) must be divisible by tensor parallel size (4).", "gpus_do_not_divide"],
    ["vllm", "OSError: Insufficient space in /dev/shm for the message queue", "shared_memory_full"],
    ["vllm", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory"],
    ["vllm", "AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free memory 74.3 GiB.", "gpu_occupied"],
    ["vllm", "ValueError: Model architectures ['XForCausalLM'] failed to be inspected. Please check the logs for more details.", "unsupported_architecture"],
    ["vllm", "The checkpoint has model type `x` but Transformers does not recognize this architecture.", "unsupported_architecture"],
    ["vllm", "RuntimeError: Cannot find any model weights with `/m`", "weights_missing"],
    ["vllm", "ValueError: Following weights were not initialized from checkpoint: {'model.norm.weight'}", "weights_incomplete"],
    ["vllm", "ValueError: Invalid repository ID or local directory specified: '/m'.", "weights_missing"],
    ["vllm", "RuntimeError: Failed to load the tokenizer.", "tokenizer_unreadable"],
    ["vllm", "KeyboardInterrupt: terminated", "boot_timeout"],
    ["vllm", "vllm serve: error: unrecognized arguments: --x", "arguments_refused"],
    ["sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. self.server_args.mem_fraction_static=0.5", "out_of_memory"],
    ["sglang", "User-specified context_length (9) is greater than the derived context_length (8).", "context_too_long"],
    [
      "sglang",
      "ValueError: XForCausalLM has no SGlang implementation and the Transformers implementation is not compatible with SGLang.",
      "unsupported_architecture"
    ],
    ["sglang", "RuntimeError: Loaded weights leave no GPU memory for the KV cache.", "out_of_memory"],
    ["sglang", "Exception: Capture cuda graph failed: CUDA error", "out_of_memory"],
    ["sglang", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory"],
    ["sglang", "ValueError: Model architectures ['X'] are not supported for now. Supported architectures: dict_keys(['Y'])", "unsupported_architecture"],
    ["sglang", "ValueError: Cannot find model module. 'XForCausalLM' is not a registered model", "unsupported_architecture"],
    ["sglang", "The checkpoint has model type `x` but Transformers does not recognize this architecture.", "unsupported_architecture"],
    ["sglang", "The repository /m contains custom code which must be executed to correctly load the model.", "remote_code_required"],
    ["sglang", "ValueError: Unrecognized model in /m.", "weights_missing"],
    ["sglang", "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/m'.", "weights_missing"],
    ["sglang", "RuntimeError: Failed to load the tokenizer.", "tokenizer_unreadable"],
    ["sglang", "ValueError: 14 is not divisible by 4", "gpus_do_not_divide"],
    ["sglang", "Cannot find any model weights with `/m`", "weights_missing"],
    ["sglang", "scheduler died during initialization (exit code: -9)", "out_of_memory"],
    ["sglang", "launch_server.py: error: unrecognized arguments: --x", "arguments_refused"]
  ]
  const wrappers = {
    vllm: "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}",
    sglang: "Received sigquit from a child process. It usually means the child failed.\nInitialization failed. Please see the error messages above."
  }
  it("have an example here for each known cause", () => {
    for (const [runtime, causes] of [
      ["vllm", vllmStartFailures],
      ["sglang", sglangStartFailures]
    ] as const) {
      const logs = failures.filter(([of]) => of === runtime).map(([, log]) => log)
      for (const { sign } of causes)
        assert.isTrue(
          logs.some((log) => sign.every((word) => log.includes(word))),
          `${runtime}: ${sign.join(" ")}`
        )
    }
  })
  for (const [runtime, log, code, text] of failures) {
    it(`${runtime}: ${code} is read from "${log.slice(0, 60)}", even if later lines only repeat it`, () => {
      const failure = realEngine(runtime).bootFailure(`INFO loading\n(EngineCore pid=7) ERROR 11-21 07:42:59 [core.py:1] ${log}\n${wrappers[runtime]}\n`)
      assert.strictEqual(failure.code, code)
      if (text !== undefined) assert.match(failure.text, text)
      assert.notMatch(failure.text, /\/m\b|pid=/)
      assert.match(failure.text, saysWhatToDo)
    })
    it(`${runtime}: a line that only repeats a failure is no cause (${code})`, () => {
      const { code, text } = realEngine(runtime).bootFailure(wrappers[runtime])
      assert.strictEqual(code, "engine_start_failed")
      assert.match(text, saysWhatToDo)
    })
  }

  it("vLLM's figures are the last ones, and metrics take precedence over the log", () => {
    const log = [
      "(Worker_TP0 pid=3) INFO 11-21 07:42:59 [model_runner.py:1] Model loading took 7.55 GiB memory and 9.1 seconds",
      "(Worker_TP0 pid=3) INFO 11-21 07:43:59 [model_runner.py:1] Model loading took 7.6 GiB memory and 9.5 seconds",
      "(Worker_TP0 pid=3) INFO [gpu_worker.py:2] Free memory on device (78.9/79.2 GiB) on startup. Desired GPU memory utilization is (0.92, 72.9 GiB). Actual usage is 8.1 GiB for consumed memory (weights + non-torch), 1.5 GiB for peak activation, and 0.4 GiB for CUDAGraph memory. Current kv cache memory in use is 62.5 GiB.",
      "(EngineCore pid=2) INFO [kv_cache_utils.py:3] GPU KV cache size: 1,234,560 tokens, Maximum concurrency for 40,960 tokens per request: 30.14x",
      "(Worker_TP0 pid=3) INFO [gpu_worker.py:2] Available KV cache memory: 62.75 GiB"
    ].join("\n")
    const gib = (value: number) => Math.round(value * 2 ** 30)
    const figures = { weights_bytes: gib(7.6), kv_cache_bytes: gib(62.75), kv_cache_tokens: 1_234_560, max_concurrency: 30.14, load_seconds: 9.5 }
    const measured = realEngine("vllm").measured({ metrics: "", log })
    assert.deepInclude(measured, figures)
    assert.closeTo(measured.overhead_bytes ?? 0, gib(2.4), 8)
    const metrics =
      'vllm:cache_config_info{block_size="16",engine="0",kv_cache_max_concurrency="31.5",kv_cache_size_tokens="1290240",num_gpu_blocks="80640"} 1.0'
    assert.deepInclude(realEngine("vllm").measured({ metrics, log }), { kv_cache_tokens: 1_290_240, max_concurrency: 31.5 })
    assert.isTrue(Object.values(realEngine("vllm").measured({ metrics: "", log: "" })).every((figure) => figure === null))
  })

  it("SGLang's figures are read from its metrics and its log, in which GB means GiB", () => {
    const log = [
      "[2026-11-21 07:59:13 TP0] Load weight begin. avail mem=78.50 GB",
      "[2026-11-21 07:59:23 TP0] Load weight end. elapsed=10.25 s, type=Qwen3ForCausalLM, quant=fp8, avail mem=70.00 GB, mem usage=8.50 GB.",
      "[2026-11-21 07:59:24 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 400000, K size: 26.00 GB, V size: 26.00 GB",
      "[2026-11-21 07:59:25 TP0] max_total_num_tokens=400000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=256, context_len=40960, available_gpu_mem=15.25 GB"
    ].join("\n")
    const gib = (value: number) => Math.round(value * 2 ** 30)
    assert.deepInclude(realEngine("sglang").measured({ metrics: "", log }), {
      weights_bytes: gib(8.5),
      kv_cache_bytes: gib(52),
      kv_cache_tokens: 400_000,
      overhead_bytes: gib(78.5 - 8.5 - 52 - 15.25),
      max_concurrency: 9.77,
      load_seconds: 10.25
    })
    const metrics = 'sglang:max_total_num_tokens{engine_type="unified",model_name="m"} 409600.0\nsglang:context_len{model_name="m"} 40960.0\n'
    assert.deepInclude(realEngine("sglang").measured({ metrics, log }), { kv_cache_tokens: 409_600, max_concurrency: 10 })
    assert.isTrue(Object.values(realEngine("sglang").measured({ metrics: "", log: "" })).every((figure) => figure === null))
  })

  it("vLLM's activation peak, graphs and start time are read, even with metrics of two engines", () => {
    const gib = (value: number) => Math.round(value * 2 ** 30)
    const account =
      "(Worker_TP0 pid=3) INFO 11-21 07:43:30 [gpu_worker.py:2] Free memory on device (78.9/79.2 GiB) on startup. Desired GPU memory utilization is (0.92, 72.9 GiB). Actual usage is 8.1 GiB for consumed memory (weights + non-torch), 1.5 GiB for peak activation, and 0.4 GiB for CUDAGraph memory. Current kv cache memory in use is 62.5 GiB."
    const init =
      "(EngineCore pid=374) INFO 11-21 07:44:12 [core.py:349] init engine (profile, create kv cache, warmup model) took 212.68 s (compilation: 13.01 s)"
    assert.deepInclude(realEngine("vllm").measured({ metrics: "", log: `${account}\n${init}` }), {
      activation_bytes: gib(1.5),
      graph_bytes: gib(0.4),
      graph_seconds: null,
      boot_seconds: 212.68
    })
    // Logged twice: the first capture is only a trial.
    const captured = ["took 0.66 GiB", "took 0.71 GiB"].map(
      (took) => `(Worker_TP0 pid=3) INFO [gpu_model_runner.py:4587] Graph capturing finished in 9 secs, ${took}`
    )
    assert.deepInclude(realEngine("vllm").measured({ metrics: "", log: [account, ...captured].join("\n") }), { graph_bytes: gib(0.71), graph_seconds: 9 })
    const series = (engine: number) => `vllm:cache_config_info{engine="${engine}",kv_cache_max_concurrency="2.5",kv_cache_size_tokens="1000"} 1.0`
    assert.deepInclude(realEngine("vllm").measured({ metrics: `${series(0)}\n${series(1)}\n`, log: "" }), { kv_cache_tokens: 2_000, max_concurrency: 5 })
  })

  it("SGLang's graphs are those of one rank for all phases", () => {
    const gib = (value: number) => Math.round(value * 2 ** 30)
    const line = (rank: string, phase: string, seconds: string, took: string) =>
      `[2026-11-21 21:34:51${rank}] Capture target ${phase} CUDA graph end. ${phase === "decode" ? "bs=[1, 2, 4], " : ""}elapsed=${seconds} s, mem usage=${took} GB, avail mem=26.15 GB.`
    const log = [" TP0", " TP1"].flatMap((rank) => [line(rank, "decode", "4.50", "0.25"), line(rank, "prefill", "47.00", "2.75")]).join("\n")
    assert.deepInclude(realEngine("sglang").measured({ metrics: "", log }), { graph_bytes: gib(3), graph_seconds: 51.5, activation_bytes: null })
    assert.deepInclude(realEngine("sglang").measured({ metrics: "", log: line("", "decode", "1.61", "0.11") }), { graph_bytes: gib(0.11), graph_seconds: 1.61 })
    const metrics = [
      'sglang:graph_memory_usage_gb{model_name="m",phase="decode",tp_rank="0"} 0.5',
      'sglang:graph_memory_usage_gb{model_name="m",phase="prefill",tp_rank="0"} 1.5',
      'sglang:graph_memory_usage_gb{model_name="m",phase="decode",tp_rank="1"} 0.5',
      'sglang:startup_time_seconds{model_name="m",tp_rank="0"} 61.5'
    ].join("\n")
    assert.deepInclude(realEngine("sglang").measured({ metrics, log }), { graph_bytes: gib(2), graph_seconds: 51.5, boot_seconds: 61.5 })
  })

  it("three engines are registered", () =>
    assert.deepStrictEqual(
      engines.map(({ runtime }) => runtime),
      ["vllm", "sglang", "reference"]
    ))
})
