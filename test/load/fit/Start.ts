import { optionalNullable } from "@seatrial/domain"
import { Schema } from "effect"

/** A start of an engine from its log or a report. Sizes in GiB per GPU. */
export const Start = Schema.Struct({
  id: Schema.String,
  group: Schema.String,
  model: Schema.String,
  gpu: Schema.String,
  gpu_memory_gib: optionalNullable(Schema.Finite),
  tp: Schema.Int,
  pp: Schema.optionalKey(Schema.Int),
  dp: Schema.optionalKey(Schema.Int),
  gpu_memory_utilization: optionalNullable(Schema.Finite),
  max_model_len: optionalNullable(Schema.Int),
  max_num_batched_tokens: optionalNullable(Schema.Int),
  max_num_seqs: optionalNullable(Schema.Int),
  enforce_eager: optionalNullable(Schema.Boolean),
  kv_cache_dtype: optionalNullable(Schema.String),
  quantization: optionalNullable(Schema.String),
  /** Absent: vLLM. */
  engine: optionalNullable(Schema.Literals(["vllm", "sglang"])),
  engine_version: optionalNullable(Schema.String),
  /** Whether whole experts are distributed over the GPUs. Absent: only with several data-parallel replicas. */
  enable_expert_parallel: optionalNullable(Schema.Boolean),
  weights_gib_per_gpu: optionalNullable(Schema.Finite),
  activation_gib: optionalNullable(Schema.Finite),
  non_torch_gib: optionalNullable(Schema.Finite),
  cuda_graph_gib: optionalNullable(Schema.Finite),
  available_kv_gib: optionalNullable(Schema.Finite),
  kv_tokens: optionalNullable(Schema.Finite),
  max_concurrency: optionalNullable(Schema.Finite),
  refused: Schema.Boolean,
  /** Why memory did not suffice; null or absent if the engine started. */
  refusal_kind: optionalNullable(Schema.String),
  source: Schema.String
})
export type Start = typeof Start.Type

/** The facts of the served model: its `config.json` and a few additional members. */
export const ModelFacts = Schema.Record(Schema.String, Schema.Unknown)
export type ModelFacts = typeof ModelFacts.Type
