import { checkedTopTokens } from "@seatrial/domain"
import {
  decimal,
  type EngineFlags,
  imageLimit,
  oneOf,
  samplingDefaults,
  templateDefaults,
  truth,
  variable,
  waitingRequests,
  wholeNumber
} from "../EngineFlag.ts"
import { reasoningParsers, toolCallParsers } from "./generated/commandLine.ts"

/** vLLM pairs `--enable-x` with `--disable-x`. */
const enabled = (name: string) => truth(`enable-${name}`, `disable-${name}`)

/** The flags that a caller may set for vLLM. Each was reviewed. */
export const vllmFlags: EngineFlags = {
  max_num_seqs: wholeNumber("max-num-seqs", 1, 1_024),
  max_num_batched_tokens: wholeNumber("max-num-batched-tokens", 512, 65_536),
  gpu_memory_utilization: decimal("gpu-memory-utilization", 0.5, 0.95),
  dtype: oneOf("dtype", ["auto", "bfloat16", "float16"]),
  quantization: oneOf("quantization", ["fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel", "mxfp8"]),
  enable_prefix_caching: enabled("prefix-caching"),
  enable_chunked_prefill: enabled("chunked-prefill"),
  enforce_eager: truth("enforce-eager", "no-enforce-eager"),
  async_scheduling: truth("async-scheduling", "no-async-scheduling"),
  language_model_only: truth("language-model-only", "no-language-model-only"),
  enable_expert_parallel: enabled("expert-parallel"),
  disable_custom_all_reduce: truth("disable-custom-all-reduce", "enable-custom-all-reduce"),
  batch_invariant: variable("VLLM_BATCH_INVARIANT"),
  reasoning_parser: oneOf("reasoning-parser", reasoningParsers),
  tool_call_parser: oneOf("tool-call-parser", toolCallParsers, (parser) => ["--enable-auto-tool-choice", `--tool-call-parser=${parser}`]),
  tool_strict_level: oneOf("tool-strict-level", ["auto", "function", "parameter"]),
  structured_outputs_backend: oneOf("structured-outputs-config.backend", ["auto", "xgrammar", "guidance"]),
  attention_backend: oneOf("attention-backend", ["FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION"]),
  default_chat_template_kwargs: templateDefaults("default-chat-template-kwargs"),
  generation_config: oneOf("generation-config", ["auto", "vllm"]),
  override_generation_config: samplingDefaults("override-generation-config"),
  max_logprobs: wholeNumber("max-logprobs", checkedTopTokens, 20, `the checks of a deployment's trial ask for the ${checkedTopTokens} likeliest tokens`),
  limit_mm_per_prompt: imageLimit("limit-mm-per-prompt"),
  seed: wholeNumber("seed", 0, 2 ** 31 - 1),
  stream_interval: wholeNumber("stream-interval", 1, 16),
  max_num_queued_reqs: waitingRequests("max-num-queued-reqs"),
  long_prefill_token_threshold: wholeNumber("long-prefill-token-threshold", 0, 65_536),
  max_cudagraph_capture_size: wholeNumber("max-cudagraph-capture-size", 1, 1_024),
  performance_mode: oneOf("performance-mode", ["balanced", "interactivity", "throughput"]),
  optimization_level: wholeNumber("optimization-level", 0, 3)
}
