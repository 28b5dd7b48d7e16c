import { Schema } from "effect"
import { RefusalCode } from "./repository.ts"

/** Every code that a run may fail with. What to do for each is in the documents, which a test compares with this list. */
export const FailureCode = Schema.Literals([
  ...RefusalCode.literals,
  "hub_unavailable",
  "weights_store_full",
  "weights_mismatch",
  "download_failed",
  "image_unavailable",
  "container_blocked",
  "provisioning_timeout",
  "capacity_lost",
  "boot_timeout",
  "out_of_memory",
  "context_does_not_fit",
  "weights_missing",
  "weights_incomplete",
  "tokenizer_unreadable",
  "gpu_occupied",
  "gpus_do_not_divide",
  "shared_memory_full",
  "arguments_refused",
  "engine_start_failed",
  "engine_lost",
  "checks_failed",
  "output_garbage",
  "template_mismatch",
  "adapter_not_applied",
  "fidelity_failed",
  "fidelity_not_run",
  "cross_request_leak",
  "nondeterministic_output",
  "trial_unavailable",
  "kv_capacity",
  "benchmark_floor",
  "gateway_unreachable"
])
export type FailureCode = typeof FailureCode.Type

/** Why a run fails, by one of the codes that there are; what is stored may be an earlier version's. */
export interface NamedFailure {
  readonly code: FailureCode
  readonly text: string
}
