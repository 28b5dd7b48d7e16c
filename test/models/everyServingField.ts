import type { ServingRequest } from "@seatrial/domain"

/** A request that sets every serving field. The compiler reports it if it lacks one. */
export const everyServingField: Required<ServingRequest> = {
  runtime: "vllm",
  host_class: ["h100", "h200"],
  max_context: 8_192,
  kv_cache_dtype: "fp8",
  yarn: { factor: 2, original_context: 4_096 },
  hold_seconds: 60,
  engine_flags: { seed: 1 }
}
