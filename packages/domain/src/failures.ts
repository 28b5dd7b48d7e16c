import { Schema } from "effect"
import { RefusalCode } from "./repository.ts"

/** Every failure code of a run. The documentation says what to do for each; a test compares it with this list. */
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
  "node_fault",
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
  "engine_crashed",
  "engine_hung",
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

/**
 * The responsible party for each failure: the caller, the hub or the network to it, the model (its repository), the
 * estimate of its memory (`fit`), the engine with this model, a node, the cluster, or Seatrial (`operator`). A failure
 * that may be a node's is retried on another node before it is attributed to anything else.
 */
export const failureOwners: Readonly<Record<FailureCode, "caller" | "hub" | "model" | "fit" | "engine" | "node" | "cluster" | "operator">> = {
  repository_not_found: "caller",
  access_required: "caller",
  no_hub_connection: "caller",
  revision_not_found: "caller",
  unsupported_architecture: "model",
  unsupported_format: "model",
  remote_code_required: "model",
  license_refused: "caller",
  does_not_fit: "caller",
  context_too_long: "caller",
  host_class_unknown: "caller",
  hub_unavailable: "hub",
  weights_store_full: "cluster",
  weights_mismatch: "hub",
  download_failed: "cluster",
  image_unavailable: "cluster",
  container_blocked: "cluster",
  provisioning_timeout: "cluster",
  capacity_lost: "cluster",
  node_fault: "node",
  boot_timeout: "cluster",
  out_of_memory: "fit",
  context_does_not_fit: "fit",
  weights_missing: "model",
  weights_incomplete: "model",
  tokenizer_unreadable: "model",
  gpu_occupied: "cluster",
  gpus_do_not_divide: "cluster",
  shared_memory_full: "cluster",
  arguments_refused: "engine",
  engine_start_failed: "engine",
  engine_lost: "cluster",
  engine_crashed: "engine",
  engine_hung: "engine",
  checks_failed: "engine",
  output_garbage: "model",
  template_mismatch: "engine",
  adapter_not_applied: "model",
  fidelity_failed: "model",
  fidelity_not_run: "model",
  cross_request_leak: "engine",
  nondeterministic_output: "engine",
  trial_unavailable: "operator",
  kv_capacity: "fit",
  benchmark_floor: "engine",
  gateway_unreachable: "cluster"
}

/** Why a run fails, with one of the current codes. Stored failures may have codes of an earlier version. */
export interface NamedFailure {
  readonly code: FailureCode
  readonly text: string
}
