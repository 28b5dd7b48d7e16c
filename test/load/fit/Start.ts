import { Schema } from "effect"

/** A start of an engine from its log or a report. Sizes in GiB per GPU. */
export const Start = Schema.Struct({
  id: Schema.String,
  group: Schema.String,
  model: Schema.String,
  gpu: Schema.String,
  gpu_memory_gib: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  tp: Schema.Int,
  pp: Schema.optionalKey(Schema.Int),
  dp: Schema.optionalKey(Schema.Int),
  gpu_memory_utilization: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  max_model_len: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  max_num_batched_tokens: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  max_num_seqs: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  enforce_eager: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  kv_cache_dtype: Schema.optionalKey(Schema.NullOr(Schema.String)),
  quantization: Schema.optionalKey(Schema.NullOr(Schema.String)),
  engine_version: Schema.optionalKey(Schema.NullOr(Schema.String)),
  weights_gib_per_gpu: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  activation_gib: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  non_torch_gib: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  cuda_graph_gib: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  available_kv_gib: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  kv_tokens: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  max_concurrency: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  refused: Schema.Boolean,
  refusal_kind: Schema.optionalKey(Schema.NullOr(Schema.String)),
  source: Schema.String
})
export type Start = typeof Start.Type

/** The facts of the served model: its `config.json` and a few additional members. */
export const ModelFacts = Schema.Record(Schema.String, Schema.Unknown)
export type ModelFacts = typeof ModelFacts.Type
