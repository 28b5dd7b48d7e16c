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
 * the current chunk. `latent`: MLA's one vector of `latent_size` values a token; `absorbed_values` are those of its up projection, which engines hold twice.
 * `index_bytes` are those of a sparse attention's index, a token and GPU; where a full layer names none it has none; its `latent_size`, where it names one, is that of what other engines keep of such a layer instead, as
 * `latent`. `state`: nothing by token, but one state a sequence,
 * of `conv_values` and `state_values`.
 */
export const LayerGroup = Schema.Union([
  Schema.Struct({ kind: Schema.Literal("full"), ...attention, index_bytes: Schema.optionalKey(Amount), latent_size: Schema.optionalKey(Count) }),
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
  /** `patches`: of the largest image; `image_tokens`: what the model reads of them. */
  vision: Schema.NullOr(
    Schema.Struct({ layers: Count, hidden_size: Count, intermediate_size: Count, patches: Count, image_tokens: Schema.optionalKey(Count) })
  ),
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
  /** Stored in 8 bits without being quantized: engines load them as values of 16. Absent in records of earlier versions. */
  float8: Schema.optionalKey(Amount),
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

const Bits = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 }))

/** What a checkpoint says of its quantization beside the method, as far as an engine's kernels or their sizes depend on it; absent where it does not say. */
export const QuantizationScheme = Schema.Struct({
  /** Of a weight. */
  bits: Schema.optionalKey(Bits),
  /** Of an activation, where these are quantized too. */
  activation_bits: Schema.optionalKey(Bits),
  /** Weights are floating-point numbers rather than whole ones. */
  floating: Schema.optionalKey(Schema.Boolean),
  activation_floating: Schema.optionalKey(Schema.Boolean),
  /** Values that share a scale; -1 for a whole row. */
  group_size: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 1_000_000 }))),
  symmetric: Schema.optionalKey(Schema.Boolean),
  /** Rows in the order of their activations. */
  desc_act: Schema.optionalKey(Schema.Boolean),
  /** Of a value of the KV cache, where the checkpoint wants it quantized. */
  cache_bits: Schema.optionalKey(Bits),
  /** A name that the method gives to the packing or to the algorithm. */
  format: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(64)))
})
export type QuantizationScheme = typeof QuantizationScheme.Type

/** What computing depends on beside sizes, for engines that do not compute everything. */
export const Computation = Schema.Struct({
  /** The feed-forward layers' function; null where the configuration leaves it to its class. */
  activation: Schema.NullOr(Schema.String.check(Schema.isMaxLength(64))),
  attention_bias: Schema.Boolean,
  mlp_bias: Schema.Boolean,
  /** The way of scaling positions: `default` where there is none, `layers` where these differ. */
  rope: Schema.String.check(Schema.isMaxLength(64)),
  /** Share of a head that turns by its position; absent where all of it does, and in records of earlier versions. */
  partial_rotary_factor: Schema.optionalKey(Schema.Finite),
  /** The safetensors types of weights other than F32, BF16 and F16, where nothing is quantized; absent for none, and in records of earlier versions. */
  types: Schema.optionalKey(Schema.Array(Schema.String.check(Schema.isMaxLength(64))))
})
export type Computation = typeof Computation.Type

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
  /** Absent where there is none, and in records of earlier versions. */
  quantization_scheme: Schema.optionalKey(QuantizationScheme),
  /** Absent in records of earlier versions, which knew only layers of one kind. */
  shape: Schema.optionalKey(ModelShape),
  /** Absent where the model encodes positions in several ways or in none that YaRN extends, and in records of earlier versions. */
  rope: Schema.optionalKey(RopeFacts),
  /** Absent in records of earlier versions. */
  computation: Schema.optionalKey(Computation),
  /** Whether no tensor's name begins with `model.`, as where only a model's body was saved; absent where one does, and in records of earlier versions. */
  bare_names: Schema.optionalKey(Schema.Literal(true))
})
export type ModelConfig = typeof ModelConfig.Type

const ModuleName = Schema.String.check(Schema.isMaxLength(256))

/**
 * What is known of a LoRA adapter: low-rank pairs for some of the linear modules of a base model, which both are pinned. The facts of a repository that holds one are
 * its base's where they are about the model: configuration, weights, parameters.
 */
export const AdapterFacts = Schema.Struct({
  base: Schema.Struct({ repo: RepoName, commit: Commit, files: Schema.Array(RepositoryFile) }),
  /** The highest rank of all its modules. */
  rank: Count,
  /** Whether rank and scale are the same for all modules: `alpha` / `rank`, or its root where `rslora`. */
  uniform: Schema.Boolean,
  alpha: Schema.Finite,
  rslora: Schema.Boolean,
  /** How the modules are named: by a list, as all linear ones, or by an expression. */
  named_by: Schema.Literals(["list", "all", "pattern"]),
  /** Names as the configuration lists them; empty where it does not list them. */
  listed: Schema.Array(ModuleName),
  /** The last parts of the adapted modules' names, in order. */
  targets: Schema.Array(ModuleName),
  /** Modules that some layer adapts without another one that engines compute together with it, as `q_proj without v_proj`. */
  unpaired: Schema.Array(ModuleName),
  /** Whether it adapts single experts of a mixture. */
  experts: Schema.Boolean,
  /** Bytes of its tensors. */
  bytes: Amount,
  /** Whose chat template it is: the base's, its own in a file, or its own in `tokenizer_config.json`. */
  template: Schema.Literals(["base", "file", "embedded"]),
  /** SHA-256 over its tensors and what scales them; null where they were not read. */
  content_hash: Schema.NullOr(Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u)))
})
export type AdapterFacts = typeof AdapterFacts.Type

/** What a repository's generation configuration says of sampling where a request says nothing. */
export const SamplingDefaults = Schema.Struct({
  temperature: Schema.optionalKey(Schema.Finite),
  top_p: Schema.optionalKey(Schema.Finite),
  top_k: Schema.optionalKey(Schema.Finite),
  min_p: Schema.optionalKey(Schema.Finite),
  repetition_penalty: Schema.optionalKey(Schema.Finite)
})
export type SamplingDefaults = typeof SamplingDefaults.Type

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
  chat_template: Schema.NullOr(Schema.String),
  /** Whether it has another template, which an engine may take for requests with tools; absent where it has none, and in records of earlier versions. */
  other_template: Schema.optionalKey(Schema.Boolean),
  /** Absent where its generation configuration was not read, and in records of earlier versions. */
  sampling: Schema.optionalKey(SamplingDefaults),
  /** Whether it says something else of sampling that no engine takes; absent where it does not, and in records of earlier versions. */
  refused_sampling: Schema.optionalKey(Schema.Literal(true)),
  /** Present where the repository holds an adapter and no model of its own: then `files` are the adapter's. */
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
