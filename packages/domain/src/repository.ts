import { Schema } from "effect"
import { Commit, RepoName } from "./source.ts"

/** One file of a repository at a commit: `blob_id` is git's; `sha256` is there for files kept in LFS. */
export const RepositoryFile = Schema.Struct({
  path: Schema.String,
  size: Schema.Int,
  blob_id: Schema.String,
  sha256: Schema.NullOr(Schema.String)
})
export type RepositoryFile = typeof RepositoryFile.Type

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))
const Amount = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 50 }))
const attention = { layers: Count, kv_heads: Count, head_size: Count, head_size_v: Count }

/**
 * Layers that keep the same thing of a sequence, and how many there are. `full`: keys and values of every token. `sliding`: of the last `window` tokens. `chunked`: of
 * the current chunk. `latent`: MLA's one vector of `latent_size` values a token, and `index_bytes` of a sparse attention's index; `absorbed_values` are those
 * of its up projection, which engines hold twice. `state`: nothing by token, but one state a sequence, of `conv_values` and `state_values`.
 */
export const LayerGroup = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("full"), ...attention }),
  Schema.Struct({ kind: Schema.Literal("sliding"), ...attention, window: Count }),
  Schema.Struct({ kind: Schema.Literal("chunked"), ...attention, chunk: Count }),
  Schema.Struct({ kind: Schema.Literal("latent"), layers: Count, latent_size: Count, index_bytes: Amount, absorbed_values: Amount }),
  Schema.Struct({ kind: Schema.Literal("state"), layers: Count, conv_values: Amount, state_values: Amount, state_float32: Schema.Boolean })
])
export type LayerGroup = typeof LayerGroup.Type

/** What the memory of a model's layers depends on; sizes are counts of values. */
export const ModelShape = Schema.Struct({
  layers: Schema.Array(LayerGroup),
  /** Width of a dense feed-forward layer, or null where there is none. */
  intermediate_size: Schema.NullOr(Count),
  experts: Schema.NullOr(Schema.Struct({ count: Count, active: Count, intermediate_size: Count })),
  /** `patches`: of the largest image. */
  vision: Schema.NullOr(Schema.Struct({ layers: Count, hidden_size: Count, intermediate_size: Count, patches: Count })),
  tied_embeddings: Schema.Boolean,
  /** Whether the output's logits pass through a soft cap, which copies them. */
  softcapped_logits: Schema.Boolean
})
export type ModelShape = typeof ModelShape.Type

/** Bytes of the weights that a plain division by the number of GPUs would get wrong. */
export const WeightParts = Schema.Struct({
  /** Held whole by each GPU: norms, routers, MLA's down projections. */
  replicated: Amount,
  /** Projections to keys and values, which are held more than once where their heads are fewer than the GPUs. */
  key_value: Amount,
  /** The vocabulary's embeddings and the output head, which are not quantized while loading. */
  embeddings: Amount,
  /** Vision and audio towers, which engines split or replicate. */
  towers: Amount,
  /** Routed experts, whose packed formats engines pad. */
  experts: Amount,
  /** Stored in 32 bits without being quantized. */
  float32: Amount,
  /** Not loaded to serve: heads for the prediction of several tokens, buffers that are worked out anew. */
  unloaded: Amount
})
export type WeightParts = typeof WeightParts.Type

const RopeValue = Schema.Union([
  Schema.Finite,
  Schema.Boolean,
  Schema.String.check(Schema.isMaxLength(64)),
  Schema.Array(Schema.Finite).check(Schema.isMaxLength(64))
])

/** How the model encodes positions, for those who extend its context. */
export const RopeFacts = Schema.Struct({
  /** The configuration's own dictionary, with its base frequency in it. */
  parameters: Schema.Record(Schema.String.check(Schema.isMaxLength(64)), RopeValue).check(Schema.isMaxProperties(32)),
  /** Whether it stands in `text_config`. */
  nested: Schema.Boolean,
  /** Tokens: `max_position_embeddings`. */
  max_positions: Count
})
export type RopeFacts = typeof RopeFacts.Type

/** The facts of `config.json` that serving and memory depend on, after unwrapping nested text configurations. */
export const ModelConfig = Schema.Struct({
  architecture: Schema.String,
  model_type: Schema.String,
  num_layers: Schema.Int,
  hidden_size: Schema.Int,
  num_attention_heads: Schema.Int,
  num_kv_heads: Schema.Int,
  head_dim: Schema.Int,
  vocab_size: Schema.Int,
  /** Tokens: the smallest of the limits that the configuration names. */
  native_context: Schema.Int,
  sliding_window: Schema.NullOr(Schema.Int),
  dtype: Schema.String,
  /** Method, or `none`. */
  quantization: Schema.String,
  /** Absent in records of earlier versions, which knew only layers of one kind. */
  shape: Schema.optionalKey(ModelShape),
  /** Absent where the model encodes positions in several ways or in none that YaRN extends, and in records of earlier versions. */
  rope: Schema.optionalKey(RopeFacts)
})
export type ModelConfig = typeof ModelConfig.Type

/** What reading a repository at a pinned commit told, without its weights. */
export const RepositoryFacts = Schema.Struct({
  repo: RepoName,
  /** As resolved: the caller's ref, or the default branch. */
  ref: Schema.String,
  commit: Commit,
  license: Schema.NullOr(Schema.String),
  gated: Schema.Boolean,
  /** The files that serving needs (configuration, tokenizer, template, safetensors), in path order. */
  files: Schema.Array(RepositoryFile),
  config: ModelConfig,
  /** Sum of the tensors' bytes as the safetensors headers state them. */
  weights_bytes: Schema.Int,
  /** Absent in records of earlier versions. */
  weight_parts: Schema.optionalKey(WeightParts),
  parameters: Schema.Int,
  chat_template: Schema.NullOr(Schema.String)
})
export type RepositoryFacts = typeof RepositoryFacts.Type

/** Why a source cannot be served; the codes of a refused preview. */
export const RefusalCode = Schema.Literals([
  "repository_not_found",
  "access_required",
  "no_hub_connection",
  "revision_not_found",
  "unsupported_architecture",
  "unsupported_format",
  "remote_code_required",
  "license_refused",
  "does_not_fit",
  "context_too_long",
  "host_class_unknown"
])
export type RefusalCode = typeof RefusalCode.Type
