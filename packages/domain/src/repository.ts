import { Schema } from "effect"
import { Commit, RepoName } from "./source.ts"

/** One file of a repository at a commit. `blob_id` is git's; `sha256` is present for files in LFS. */
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
 * A group of layers with the same cache. `full`: keys and values of every token. `sliding`: of the last `window`
 * tokens. `chunked`: of the current chunk. `latent`: MLA's vector of `latent_size` values per token; `absorbed_values`
 * counts the up projection's values, which engines hold twice. `index_bytes`: bytes per token and GPU of the index of
 * sparse attention; absent in a full layer without an index. `latent_size` of a full layer: the latent size if an
 * engine caches the layer as `latent` instead. `state`: no cache per token, but one state per sequence with
 * `conv_values` and `state_values`.
 */
export const LayerGroup = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("full"), ...attention, index_bytes: Schema.optionalKey(Amount), latent_size: Schema.optionalKey(Count) }),
  Schema.Struct({ kind: Schema.Literal("sliding"), ...attention, window: Count }),
  Schema.Struct({ kind: Schema.Literal("chunked"), ...attention, chunk: Count }),
  Schema.Struct({ kind: Schema.Literal("latent"), layers: Count, latent_size: Count, index_bytes: Amount, absorbed_values: Amount }),
  Schema.Struct({ kind: Schema.Literal("state"), layers: Count, conv_values: Amount, state_values: Amount, state_float32: Schema.Boolean })
])
export type LayerGroup = typeof LayerGroup.Type

/** The parameters of the memory use of a model's layers. Sizes are numbers of values. */
export const ModelShape = Schema.Struct({
  layers: Schema.Array(LayerGroup),
  /** Width of a dense feed-forward layer; null if there is none. */
  intermediate_size: Schema.NullOr(Count),
  experts: Schema.NullOr(Schema.Struct({ count: Count, active: Count, intermediate_size: Count })),
  /** `patches`: of the largest image; `image_tokens`: the tokens that the model reads for it. */
  vision: Schema.NullOr(
    Schema.Struct({ layers: Count, hidden_size: Count, intermediate_size: Count, patches: Count, image_tokens: Schema.optionalKey(Count) })
  ),
  tied_embeddings: Schema.Boolean,
  /** Whether the output logits pass through a soft cap, which makes a copy. */
  softcapped_logits: Schema.Boolean
})
export type ModelShape = typeof ModelShape.Type

/** Bytes of the weights that are not divided evenly by the number of GPUs. */
export const WeightParts = Schema.Struct({
  /** Replicated on each GPU: norms, routers, MLA's down projections. */
  replicated: Amount,
  /** Projections to keys and values, which are replicated if there are fewer heads than GPUs. */
  key_value: Amount,
  /** Embeddings of the vocabulary and the output head. Engines do not quantize them while loading. */
  embeddings: Amount,
  /** Vision and audio towers, which engines split or replicate. */
  towers: Amount,
  /** Routed experts, whose packed formats engines pad. */
  experts: Amount,
  /** Unquantized tensors stored in 32 bits. */
  float32: Amount,
  /**
   * Unquantized tensors stored in 8 bits, which engines load as 16-bit values. Absent in records of earlier versions.
   */
  float8: Schema.optionalKey(Amount),
  /**
   * The largest tensor with the gate and up projections of all experts of a layer. Absent if each expert has its own
   * tensors, and in records of earlier versions.
   */
  fused_experts: Schema.optionalKey(Amount),
  /** Not loaded to serve: heads for multi-token prediction, buffers that are computed again. */
  unloaded: Amount
})
export type WeightParts = typeof WeightParts.Type

const RopeValue = Schema.Union([
  Schema.Finite,
  Schema.Boolean,
  Schema.String.check(Schema.isMaxLength(64)),
  Schema.Array(Schema.Finite).check(Schema.isMaxLength(64))
])

/** How the model encodes positions, as needed to extend its context. */
export const RopeFacts = Schema.Struct({
  /** The dictionary of the configuration, including its base frequency. */
  parameters: Schema.Record(Schema.String.check(Schema.isMaxLength(64)), RopeValue).check(Schema.isMaxProperties(32)),
  /** Whether the dictionary is in `text_config`. */
  nested: Schema.Boolean,
  /** Tokens: `max_position_embeddings`. */
  max_positions: Count
})
export type RopeFacts = typeof RopeFacts.Type

const Bits = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 }))

/**
 * The details of a checkpoint's quantization that an engine's kernels or their sizes depend on. A field is absent if
 * the checkpoint does not state it.
 */
export const QuantizationScheme = Schema.Struct({
  /** Bits per weight. */
  bits: Schema.optionalKey(Bits),
  /** Bits per activation, if activations are quantized. */
  activation_bits: Schema.optionalKey(Bits),
  /** Whether weights are floating-point numbers rather than integers. */
  floating: Schema.optionalKey(Schema.Boolean),
  activation_floating: Schema.optionalKey(Schema.Boolean),
  /** Number of values that share a scale; -1 for a whole row. */
  group_size: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 1_000_000 }))),
  symmetric: Schema.optionalKey(Schema.Boolean),
  /** Whether rows are in activation order. */
  desc_act: Schema.optionalKey(Schema.Boolean),
  /** Bits per KV cache value, if the checkpoint asks for a quantized cache. */
  cache_bits: Schema.optionalKey(Bits),
  /** The method's name for the packing or the algorithm. */
  format: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(64)))
})
export type QuantizationScheme = typeof QuantizationScheme.Type

/** Properties of the computation that some engines do not support. */
export const Computation = Schema.Struct({
  /** Activation function of the feed-forward layers; null if the model class decides. */
  activation: Schema.NullOr(Schema.String.check(Schema.isMaxLength(64))),
  attention_bias: Schema.Boolean,
  mlp_bias: Schema.Boolean,
  /** Scaling of positions: `default` if there is none, `layers` if it differs between layers. */
  rope: Schema.String.check(Schema.isMaxLength(64)),
  /** Share of a head that is rotated by position; absent if the whole head is, and in records of earlier versions. */
  partial_rotary_factor: Schema.optionalKey(Schema.Finite),
  /**
   * The safetensors types of unquantized weights other than F32, BF16 and F16; absent if there are none, and in records
   * of earlier versions.
   */
  types: Schema.optionalKey(Schema.Array(Schema.String.check(Schema.isMaxLength(64))))
})
export type Computation = typeof Computation.Type

/** The facts of `config.json` that determine serving and memory use, after unwrapping nested text configurations. */
export const ModelConfig = Schema.Struct({
  architecture: Schema.String,
  model_type: Schema.String,
  num_layers: Schema.Int,
  hidden_size: Schema.Int,
  num_attention_heads: Schema.Int,
  num_kv_heads: Schema.Int,
  head_dim: Schema.Int,
  vocab_size: Schema.Int,
  /** Tokens: the smallest limit in the configuration. */
  native_context: Schema.Int,
  sliding_window: Schema.NullOr(Schema.Int),
  dtype: Schema.String,
  /** The method, or `none`. */
  quantization: Schema.String,
  /** Absent if there is no quantization, and in records of earlier versions. */
  quantization_scheme: Schema.optionalKey(QuantizationScheme),
  /** Absent in records of earlier versions, which supported one kind of layer. */
  shape: Schema.optionalKey(ModelShape),
  /**
   * Absent if the model encodes positions in several ways or in a way that YaRN does not extend, and in records of
   * earlier versions.
   */
  rope: Schema.optionalKey(RopeFacts),
  /** Absent in records of earlier versions. */
  computation: Schema.optionalKey(Computation),
  /**
   * Whether no tensor name begins with `model.`, as in files with only a model's body; absent if one does, and in
   * records of earlier versions.
   */
  bare_names: Schema.optionalKey(Schema.Literal(true))
})
export type ModelConfig = typeof ModelConfig.Type

const ModuleName = Schema.String.check(Schema.isMaxLength(256))

/**
 * The facts of a LoRA adapter: low-rank pairs for some linear modules of a base model. Adapter and base are pinned. In
 * the facts of an adapter repository, configuration, weights and parameters are the base's.
 */
export const AdapterFacts = Schema.Struct({
  base: Schema.Struct({ repo: RepoName, commit: Commit, files: Schema.Array(RepositoryFile) }),
  /** The highest rank of any module. */
  rank: Count,
  /** Whether all modules have the same rank and scale: `alpha` / `rank`, or `alpha` / sqrt(`rank`) with `rslora`. */
  uniform: Schema.Boolean,
  alpha: Schema.Finite,
  rslora: Schema.Boolean,
  /** How the configuration selects modules: a list, all linear modules, or a regular expression. */
  named_by: Schema.Literals(["list", "all", "pattern"]),
  /** Names in the configuration's list; empty without a list. */
  listed: Schema.Array(ModuleName),
  /** The last parts of the adapted modules' names, sorted. */
  targets: Schema.Array(ModuleName),
  /**
   * Modules that some layer adapts without another module that engines fuse with it, such as `q_proj without v_proj`.
   */
  unpaired: Schema.Array(ModuleName),
  /** Whether it adapts individual experts of a mixture. */
  experts: Schema.Boolean,
  /** Bytes of its tensors. */
  bytes: Amount,
  /** Source of the chat template: the base, the adapter's own file, or the adapter's `tokenizer_config.json`. */
  template: Schema.Literals(["base", "file", "embedded"]),
  /** SHA-256 of its tensors and scaling parameters; null if the tensors were not read. */
  content_hash: Schema.NullOr(Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)))
})
export type AdapterFacts = typeof AdapterFacts.Type

/** The sampling defaults of a repository's generation configuration. */
export const SamplingDefaults = Schema.Struct({
  temperature: Schema.optionalKey(Schema.Finite),
  top_p: Schema.optionalKey(Schema.Finite),
  top_k: Schema.optionalKey(Schema.Finite),
  min_p: Schema.optionalKey(Schema.Finite),
  repetition_penalty: Schema.optionalKey(Schema.Finite)
})
export type SamplingDefaults = typeof SamplingDefaults.Type

/** The facts of a repository at a pinned commit, read without its weights. */
export const RepositoryFacts = Schema.Struct({
  repo: RepoName,
  /** The resolved ref: the caller's, or the default branch. */
  ref: Schema.String,
  commit: Commit,
  license: Schema.NullOr(Schema.String),
  gated: Schema.Boolean,
  /** The files that serving needs (configuration, tokenizer, template, safetensors), in path order. */
  files: Schema.Array(RepositoryFile),
  config: ModelConfig,
  /** Sum of the tensors' bytes in the safetensors headers. */
  weights_bytes: Schema.Int,
  /** Absent in records of earlier versions. */
  weight_parts: Schema.optionalKey(WeightParts),
  parameters: Schema.Int,
  chat_template: Schema.NullOr(Schema.String),
  /**
   * Whether there is a second template that an engine may use for requests with tools; absent if there is none, and in
   * records of earlier versions.
   */
  other_template: Schema.optionalKey(Schema.Boolean),
  /** Absent if the generation configuration was not read, and in records of earlier versions. */
  sampling: Schema.optionalKey(SamplingDefaults),
  /**
   * Whether the generation configuration has sampling values that no engine accepts; absent if not, and in records of
   * earlier versions.
   */
  refused_sampling: Schema.optionalKey(Schema.Literal(true)),
  /** Present if the repository holds an adapter instead of a complete model. `files` are then the adapter's. */
  adapter: Schema.optionalKey(AdapterFacts)
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
