import {
  decimal,
  type EngineFlags,
  imageLimit,
  offOrWholeNumber,
  oneNumberOf,
  oneOf,
  templateDefaults,
  truth,
  waitingRequests,
  wholeNumber
} from "../EngineFlag.ts"
import { reasoningParsers, toolCallParsers } from "./generated/commandLine.ts"

/** SGLang has no word for a disabled option. */
const present = (name: string) => truth(name, null)

/** The flags that a caller may set for SGLang. Each was reviewed. */
export const sglangFlags: EngineFlags = {
  max_running_requests: wholeNumber("max-running-requests", 1, 4_096),
  chunked_prefill_size: offOrWholeNumber("chunked-prefill-size", 256, 65_536),
  max_prefill_tokens: wholeNumber("max-prefill-tokens", 1_024, 262_144),
  mem_fraction_static: decimal("mem-fraction-static", 0.5, 0.95),
  page_size: oneNumberOf("page-size", [1, 16, 32, 64]),
  dtype: oneOf("dtype", ["auto", "bfloat16", "float16"]),
  quantization: oneOf("quantization", ["fp8", "mxfp8"]),
  max_queued_requests: waitingRequests("max-queued-requests"),
  stream_interval: wholeNumber("stream-interval", 1, 16),
  random_seed: wholeNumber("random-seed", 0, 2 ** 31 - 1),
  ep_size: wholeNumber("ep-size", 1, 64),
  schedule_policy: oneOf("schedule-policy", ["fcfs", "lpm", "lof", "dfs-weight"]),
  schedule_conservativeness: decimal("schedule-conservativeness", 0.1, 2),
  // SGLang itself refuses 0 as out of range.
  swa_full_tokens_ratio: decimal("swa-full-tokens-ratio", 0.01, 1),
  disable_radix_cache: present("disable-radix-cache"),
  enable_mixed_chunk: present("enable-mixed-chunk"),
  enable_multimodal: present("enable-multimodal"),
  constrained_json_disable_any_whitespace: present("constrained-json-disable-any-whitespace"),
  enable_strict_thinking: present("enable-strict-thinking"),
  strip_thinking_cache: present("strip-thinking-cache"),
  disable_overlap_schedule: present("disable-overlap-schedule"),
  disable_custom_all_reduce: present("disable-custom-all-reduce"),
  enable_deterministic_inference: present("enable-deterministic-inference"),
  // `auto` is left out, because the catalog must not show a guess.
  reasoning_parser: oneOf("reasoning-parser", reasoningParsers),
  tool_call_parser: oneOf("tool-call-parser", toolCallParsers),
  sampling_defaults: oneOf("sampling-defaults", ["model", "openai"]),
  default_chat_template_kwargs: templateDefaults("default-chat-template-kwargs"),
  limit_mm_data_per_request: imageLimit("limit-mm-data-per-request"),
  grammar_backend: oneOf("grammar-backend", ["xgrammar", "llguidance"]),
  attention_backend: oneOf("attention-backend", ["fa3", "fa4", "flashinfer", "triton", "trtllm_mha"]),
  cuda_graph_max_bs_decode: wholeNumber("cuda-graph-max-bs-decode", 1, 1_024),
  cuda_graph_backend_decode: oneOf("cuda-graph-backend-decode", ["full", "breakable", "disabled"]),
  cuda_graph_backend_prefill: oneOf("cuda-graph-backend-prefill", ["full", "breakable", "disabled"])
}
