import type { StartFailure } from "../engineLog.ts"
import { argumentsRefused, outOfMemory, tokenizerUnreadable, unsupported, weightsMissing } from "../startFailures.ts"

/**
 * Causes in SGLang's log, the most specific first. "Received sigquit from a child process" and "Initialization failed"
 * are never the cause. A context that is too long is not listed, because SGLang starts anyway and the trial measures
 * its pool.
 */
export const sglangStartFailures: ReadonlyArray<StartFailure> = [
  {
    sign: ["Not enough memory. Please try to increase --mem-fraction-static"],
    code: "out_of_memory",
    text: "The weights leave no memory for the KV cache. Try a larger host class."
  },
  {
    sign: ["Loaded weights leave no GPU memory for the KV cache"],
    code: "out_of_memory",
    text: "The weights leave no memory for the KV cache. Try a larger host class."
  },
  {
    sign: ["Capture cuda graph failed"],
    code: "out_of_memory",
    text: "The GPU's memory was used up while graphs were captured. Try a lower mem_fraction_static, or a larger host class."
  },
  {
    sign: ["User-specified context_length", "is greater than the derived context_length"],
    source: [" context_length (", ") is greater than the derived context_length ("],
    code: "context_too_long",
    text: "The model does not support that many tokens. Try a shorter context, or extend the model's context with yarn."
  },
  ...unsupported,
  {
    sign: ["has no SGlang implementation"],
    code: "unsupported_architecture",
    text: "The engine does not support the model's architecture. Choose another runtime or model."
  },
  {
    sign: ["Cannot find model module"],
    code: "unsupported_architecture",
    text: "The engine does not support the model's architecture. Choose another runtime or model."
  },
  weightsMissing,
  {
    by: "transformers",
    sign: ["Unrecognized model in"],
    code: "weights_missing",
    text: "The engine does not support the model in its folder: config.json names no supported type. Choose another runtime or model."
  },
  {
    by: "huggingface_hub",
    sign: ["Repo id must be in the form"],
    code: "weights_missing",
    text: "The engine found no model in its folder: a file that it needs is missing from the repository. Choose another revision."
  },
  tokenizerUnreadable,
  {
    sign: ["is not divisible by"],
    code: "gpus_do_not_divide",
    text: "The model cannot be split over this number of GPUs. Choose a host class with another number of GPUs."
  },
  outOfMemory,
  {
    sign: ["scheduler died during initialization (exit code: -9)"],
    source: ["scheduler died during initialization (exit code: "],
    code: "out_of_memory",
    text: "The engine exceeded its host memory while it started and was killed. Choose a host class with more memory, or ask the cluster administrator to raise its memoryBytes."
  },
  argumentsRefused
]
