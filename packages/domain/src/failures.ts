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

interface FailureTraits {
  /**
   * The responsible party: the caller, the hub or the network to it, the model (its repository), the estimate of its
   * memory (`fit`), the engine with this model, a node, the cluster, or Seatrial (`operator`).
   */
  readonly owner: "caller" | "hub" | "model" | "fit" | "engine" | "node" | "cluster" | "operator"
  /** Whether one node may show it and another may not. A second node decides before the owner is responsible. */
  readonly mayBeNode: boolean
  /** Whether a failing GPU may also cause it. */
  readonly mayBeGpu: boolean
  /** Whether files that are missing from the weights store may cause it. They are downloaded again once. */
  readonly mayBeWeights: boolean
}

const onlyOwner = { mayBeNode: false, mayBeGpu: false, mayBeWeights: false }

/** What each failure implies. Each rule for some of the codes reads this table. */
export const failureTraits: Readonly<Record<FailureCode, FailureTraits>> = {
  repository_not_found: { ...onlyOwner, owner: "caller" },
  access_required: { ...onlyOwner, owner: "caller" },
  no_hub_connection: { ...onlyOwner, owner: "caller" },
  revision_not_found: { ...onlyOwner, owner: "caller" },
  unsupported_architecture: { ...onlyOwner, owner: "model" },
  unsupported_format: { ...onlyOwner, owner: "model" },
  remote_code_required: { ...onlyOwner, owner: "model" },
  license_refused: { ...onlyOwner, owner: "caller" },
  does_not_fit: { ...onlyOwner, owner: "caller" },
  context_too_long: { ...onlyOwner, owner: "caller" },
  host_class_unknown: { ...onlyOwner, owner: "caller" },
  hub_unavailable: { ...onlyOwner, owner: "hub" },
  weights_store_full: { ...onlyOwner, owner: "cluster" },
  weights_mismatch: { ...onlyOwner, owner: "hub" },
  download_failed: { ...onlyOwner, owner: "cluster" },
  image_unavailable: { ...onlyOwner, owner: "cluster" },
  container_blocked: { ...onlyOwner, owner: "cluster" },
  provisioning_timeout: { ...onlyOwner, owner: "cluster" },
  capacity_lost: { ...onlyOwner, owner: "cluster" },
  node_fault: { ...onlyOwner, owner: "node" },
  boot_timeout: { ...onlyOwner, owner: "cluster" },
  out_of_memory: { ...onlyOwner, owner: "fit" },
  context_does_not_fit: { ...onlyOwner, owner: "fit" },
  weights_missing: { ...onlyOwner, owner: "model", mayBeWeights: true },
  weights_incomplete: { ...onlyOwner, owner: "model", mayBeWeights: true },
  tokenizer_unreadable: { ...onlyOwner, owner: "model", mayBeWeights: true },
  gpu_occupied: { ...onlyOwner, owner: "cluster" },
  gpus_do_not_divide: { ...onlyOwner, owner: "cluster" },
  shared_memory_full: { ...onlyOwner, owner: "cluster" },
  arguments_refused: { ...onlyOwner, owner: "engine" },
  engine_start_failed: { ...onlyOwner, owner: "engine", mayBeWeights: true },
  engine_lost: { ...onlyOwner, owner: "cluster" },
  engine_crashed: { ...onlyOwner, owner: "engine", mayBeNode: true, mayBeGpu: true },
  engine_hung: { ...onlyOwner, owner: "engine", mayBeGpu: true },
  checks_failed: { ...onlyOwner, owner: "engine", mayBeGpu: true },
  output_garbage: { ...onlyOwner, owner: "model", mayBeNode: true, mayBeGpu: true },
  template_mismatch: { ...onlyOwner, owner: "engine" },
  adapter_not_applied: { ...onlyOwner, owner: "model" },
  fidelity_failed: { ...onlyOwner, owner: "model" },
  fidelity_not_run: { ...onlyOwner, owner: "model" },
  cross_request_leak: { ...onlyOwner, owner: "engine" },
  nondeterministic_output: { ...onlyOwner, owner: "engine", mayBeNode: true, mayBeGpu: true },
  trial_unavailable: { ...onlyOwner, owner: "operator", mayBeNode: true, mayBeGpu: true },
  kv_capacity: { ...onlyOwner, owner: "fit" },
  benchmark_floor: { ...onlyOwner, owner: "engine", mayBeGpu: true },
  gateway_unreachable: { ...onlyOwner, owner: "cluster" }
}

/** Why a run fails, with one of the current codes. Stored failures may have codes of an earlier version. */
export interface NamedFailure {
  readonly code: FailureCode
  readonly text: string
}
