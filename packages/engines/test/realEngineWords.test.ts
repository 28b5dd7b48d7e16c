import { assert, describe, it } from "@effect/vitest"
import { engines } from "../src/index.ts"
import { found } from "./realEngine.ts"

describe("what the engines say", () => {
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
    ["vllm", "KeyboardInterrupt: terminated", "boot_timeout"],
    ["vllm", "vllm serve: error: unrecognized arguments: --x", "arguments_refused"],
    ["sglang", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. self.server_args.mem_fraction_static=0.5", "out_of_memory"],
    ["sglang", "User-specified context_length (9) is greater than the derived context_length (8).", "context_too_long"],
    [
      "sglang",
      "ValueError: XForCausalLM has no SGlang implementation and the Transformers implementation is not compatible with SGLang.",
      "unsupported_architecture"
    ],
    ["sglang", "Cannot find any model weights with `/m`", "weights_missing"],
    ["sglang", "scheduler died during initialization (exit code: -9)", "out_of_memory"],
    ["sglang", "launch_server.py: error: unrecognized arguments: --x", "arguments_refused"]
  ]
  const wrappers = {
    vllm: "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}",
    sglang: "Received sigquit from a child process. It usually means the child failed.\nInitialization failed. Please see the error messages above."
  }
  for (const [runtime, log, code, text] of failures) {
    it(`${runtime}: ${code} is read from "${log.slice(0, 60)}", above what only repeats it`, () => {
      const failure = found(runtime).bootFailure(`INFO loading\n(EngineCore pid=7) ERROR 11-21 07:42:59 [core.py:1] ${log}\n${wrappers[runtime]}\n`)
      assert.strictEqual(failure.code, code)
      if (text !== undefined) assert.match(failure.text, text)
      assert.notMatch(failure.text, /\/m\b|pid=/)
    })
    it(`${runtime}: what only repeats a failure is none of its own (${code})`, () => {
      assert.strictEqual(found(runtime).bootFailure(wrappers[runtime]).code, "engine_start_failed")
    })
  }

  it("vLLM's figures are those that it said last, its metrics before its log", () => {
    const log = [
      "(Worker_TP0 pid=3) INFO 11-21 07:42:59 [model_runner.py:1] Model loading took 7.55 GiB memory and 9.1 seconds",
      "(Worker_TP0 pid=3) INFO 11-21 07:43:59 [model_runner.py:1] Model loading took 7.6 GiB memory and 9.5 seconds",
      "(Worker_TP0 pid=3) INFO [gpu_worker.py:2] Free memory on device (78.9/79.2 GiB) on startup. Desired GPU memory utilization is (0.92, 72.9 GiB). Actual usage is 8.1 GiB for consumed memory (weights + non-torch), 1.5 GiB for peak activation, and 0.4 GiB for CUDAGraph memory. Current kv cache memory in use is 62.5 GiB.",
      "(EngineCore pid=2) INFO [kv_cache_utils.py:3] GPU KV cache size: 1,234,560 tokens, Maximum concurrency for 40,960 tokens per request: 30.14x",
      "(Worker_TP0 pid=3) INFO [gpu_worker.py:2] Available KV cache memory: 62.75 GiB"
    ].join("\n")
    const gib = (value: number) => Math.round(value * 2 ** 30)
    const figures = { weights_bytes: gib(7.6), kv_cache_bytes: gib(62.75), kv_cache_tokens: 1_234_560, max_concurrency: 30.14, load_seconds: 9.5 }
    const said = found("vllm").measured({ metrics: "", log })
    assert.deepInclude(said, figures)
    assert.closeTo(said.overhead_bytes ?? 0, gib(2.4), 8)
    const metrics =
      'vllm:cache_config_info{block_size="16",engine="0",kv_cache_max_concurrency="31.5",kv_cache_size_tokens="1290240",num_gpu_blocks="80640"} 1.0'
    assert.deepInclude(found("vllm").measured({ metrics, log }), { kv_cache_tokens: 1_290_240, max_concurrency: 31.5 })
    assert.deepStrictEqual(Object.values(found("vllm").measured({ metrics: "", log: "" })), [null, null, null, null, null, null])
  })

  it("SGLang's figures are read from its metrics and its log, of which GB is GiB", () => {
    const log = [
      "[2026-11-21 07:59:13 TP0] Load weight begin. avail mem=78.50 GB",
      "[2026-11-21 07:59:23 TP0] Load weight end. elapsed=10.25 s, type=Qwen3ForCausalLM, quant=fp8, avail mem=70.00 GB, mem usage=8.50 GB.",
      "[2026-11-21 07:59:24 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 400000, K size: 26.00 GB, V size: 26.00 GB",
      "[2026-11-21 07:59:25 TP0] max_total_num_tokens=400000, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=256, context_len=40960, available_gpu_mem=15.25 GB"
    ].join("\n")
    const gib = (value: number) => Math.round(value * 2 ** 30)
    assert.deepStrictEqual(found("sglang").measured({ metrics: "", log }), {
      weights_bytes: gib(8.5),
      kv_cache_bytes: gib(52),
      kv_cache_tokens: 400_000,
      overhead_bytes: gib(78.5 - 8.5 - 52 - 15.25),
      max_concurrency: 9.77,
      load_seconds: 10.25
    })
    const metrics = 'sglang:max_total_num_tokens{engine_type="unified",model_name="m"} 409600.0\nsglang:context_len{model_name="m"} 40960.0\n'
    assert.deepInclude(found("sglang").measured({ metrics, log }), { kv_cache_tokens: 409_600, max_concurrency: 10 })
    assert.deepStrictEqual(Object.values(found("sglang").measured({ metrics: "", log: "" })), [null, null, null, null, null, null])
  })

  it("three engines are served with", () =>
    assert.deepStrictEqual(
      engines.map(({ runtime }) => runtime),
      ["vllm", "sglang", "reference"]
    ))
})
