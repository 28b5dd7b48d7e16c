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
  quantization: Schema.String
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
