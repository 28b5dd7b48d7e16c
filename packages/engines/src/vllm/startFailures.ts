import type { StartFailure } from "../engineLog.ts"
import { argumentsRefused, outOfMemory, tokenizerUnreadable, unsupported, weightsMissing } from "../startFailures.ts"

const longest = (line: string) => /estimated maximum model length is (\d+)/.exec(line)?.[1]

/**
 * Causes in vLLM's log, the most specific first. The last lines ("Engine core initialization failed", "WorkerProc
 * initialization failed") are never the cause.
 */
export const vllmStartFailures: ReadonlyArray<StartFailure> = [
  {
    sign: ["To serve at least one request with the model's max seq len"],
    code: "context_does_not_fit",
    text: (line) => {
      const tokens = longest(line)
      const remedy = tokens === undefined ? "a shorter context" : `a context of ${tokens} tokens`
      return `The KV cache cannot hold one sequence of the requested context. Try ${remedy}.`
    }
  },
  {
    sign: ["No available memory for the cache blocks"],
    code: "out_of_memory",
    text: "The weights leave no memory for the KV cache. Try a larger host class."
  },
  {
    sign: ["Free memory on device", "is less than desired GPU memory utilization"],
    code: "gpu_occupied",
    text: "The GPU's memory was not free when the engine started, because another process uses it. Try again, or ask the cluster administrator to check the node."
  },
  { sign: ["Error in memory profiling"], code: "gpu_occupied", text: "Another process allocated or freed GPU memory while the engine measured it. Try again." },
  {
    sign: ["User-specified max_model_len", "is greater than the derived max_model_len"],
    code: "context_too_long",
    text: "The model does not support that many tokens. Try a shorter context, or extend the model's context with yarn."
  },
  ...unsupported,
  {
    sign: ["failed to be inspected"],
    code: "unsupported_architecture",
    text: "The engine's image cannot load its own code for the model's architecture. Choose another runtime or model."
  },
  weightsMissing,
  {
    sign: ["Following weights were not initialized from checkpoint"],
    code: "weights_incomplete",
    text: "The checkpoint lacks weights that the model's configuration names. Choose another revision."
  },
  {
    sign: ["Invalid repository ID or local directory specified"],
    code: "weights_missing",
    text: "The engine found no model in its folder: a file that it needs is missing from the repository. Choose another revision."
  },
  tokenizerUnreadable,
  {
    sign: ["Total number of attention heads", "must be divisible by tensor parallel size"],
    code: "gpus_do_not_divide",
    text: "The model's attention heads cannot be split over this number of GPUs. Choose a host class with another number of GPUs."
  },
  {
    sign: ["Insufficient space in /dev/shm for"],
    source: ["Insufficient space in ", " for "],
    code: "shared_memory_full",
    text: "The pod's shared memory is too small for several GPUs. Ask the cluster administrator to raise the host class's sharedMemoryBytes."
  },
  outOfMemory,
  {
    by: "python",
    sign: ["KeyboardInterrupt: terminated"],
    code: "boot_timeout",
    text: "The engine was stopped before it was ready. Try again, or choose a host class with a longer bootDeadlineSeconds."
  },
  argumentsRefused
]
