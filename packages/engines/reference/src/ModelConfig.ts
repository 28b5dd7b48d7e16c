import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { BootFailure } from "./BootFailure.ts"

const absent = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const Count = Schema.Int.check(Schema.isGreaterThan(0))
const Ids = Schema.Union([Schema.Int, Schema.Array(Schema.Int)])

const RopeFields = Schema.Struct({
  rope_type: absent(Schema.String),
  type: absent(Schema.String),
  rope_theta: absent(Schema.Finite),
  factor: absent(Schema.Finite),
  low_freq_factor: absent(Schema.Finite),
  high_freq_factor: absent(Schema.Finite),
  original_max_position_embeddings: absent(Schema.Finite)
})

const ConfigFile = Schema.Struct({
  architectures: Schema.Array(Schema.String),
  hidden_size: Count,
  intermediate_size: Count,
  num_hidden_layers: Count,
  num_attention_heads: Count,
  num_key_value_heads: absent(Count),
  head_dim: absent(Count),
  vocab_size: Count,
  max_position_embeddings: Count,
  rms_norm_eps: absent(Schema.Finite),
  rope_theta: absent(Schema.Finite),
  rope_scaling: absent(RopeFields),
  rope_parameters: absent(RopeFields),
  tie_word_embeddings: absent(Schema.Boolean),
  attention_bias: absent(Schema.Boolean),
  mlp_bias: absent(Schema.Boolean),
  hidden_act: absent(Schema.String),
  eos_token_id: absent(Ids),
  quantization_config: absent(Schema.Unknown)
})

const GenerationFile = Schema.Struct({
  eos_token_id: absent(Ids),
  temperature: absent(Schema.Finite),
  top_p: absent(Schema.Finite),
  top_k: absent(Schema.Finite),
  min_p: absent(Schema.Finite),
  repetition_penalty: absent(Schema.Finite)
})

/** How positions turn into angles. */
export interface RopeConfig {
  readonly theta: number
  readonly scaling:
    | { readonly kind: "none" }
    | { readonly kind: "linear"; readonly factor: number }
    | { readonly kind: "llama3"; readonly factor: number; readonly lowFrequency: number; readonly highFrequency: number; readonly originalLength: number }
}

/** The dimensions of a Llama model, and the token ids that end an answer. */
export interface ModelConfig {
  readonly hidden: number
  readonly intermediate: number
  readonly layers: number
  readonly heads: number
  readonly kvHeads: number
  readonly headDim: number
  readonly vocabulary: number
  readonly maxLength: number
  readonly epsilon: number
  readonly tied: boolean
  readonly rope: RopeConfig
  readonly endTokens: ReadonlySet<number>
}

/** Sampling settings that the repository proposes for requests that give none. */
export interface SamplingDefaults {
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly repetitionPenalty: number
}

/** Reads and decodes one JSON file of the model directory. Throws `BootFailure` where it is absent or of another shape. */
export const readJsonFile = <S extends Schema.ConstraintDecoder<unknown>>(directory: string, file: string, schema: S): S["Type"] => {
  let text: string
  try {
    text = readFileSync(join(directory, file), "utf8")
  } catch {
    throw new BootFailure(`Invalid repository ID or local directory specified: '${directory}' has no ${file}`)
  }
  const decoded = Schema.decodeUnknownResult(Schema.fromJsonString(schema))(text)
  if (Result.isFailure(decoded)) throw new BootFailure(`Cannot read ${file}: ${decoded.failure.message.replaceAll(/\s+/g, " ")}`)
  return decoded.success
}

const ids = (value: number | ReadonlyArray<number> | null | undefined): ReadonlyArray<number> => (typeof value === "number" ? [value] : (value ?? []))

const ropeOf = (file: typeof ConfigFile.Type): RopeConfig => {
  const fields = file.rope_parameters ?? file.rope_scaling ?? {}
  const theta = fields.rope_theta ?? file.rope_theta ?? 10_000
  const kind = fields.rope_type ?? fields.type ?? "default"
  if (kind === "default") return { theta, scaling: { kind: "none" } }
  const factor = fields.factor ?? 0
  if (kind === "linear" && factor > 0) return { theta, scaling: { kind, factor } }
  const { high_freq_factor: highFrequency, low_freq_factor: lowFrequency, original_max_position_embeddings: originalLength } = fields
  if (kind === "llama3" && factor > 0 && lowFrequency && highFrequency && originalLength && highFrequency > lowFrequency) {
    return { theta, scaling: { kind, factor, lowFrequency, highFrequency, originalLength } }
  }
  throw new BootFailure(`Unsupported rope scaling '${kind}' in config.json: only default, linear and llama3, each with its fields`)
}

/** Reads `config.json` and `generation_config.json` (which may be absent). Throws `BootFailure` for what the engine cannot compute. */
export const readModelConfig = (directory: string): { readonly config: ModelConfig; readonly defaults: SamplingDefaults } => {
  const named = readJsonFile(directory, "config.json", Schema.Struct({ architectures: absent(Schema.Array(Schema.String)) }))
  const architectures = named.architectures ?? []
  if (!architectures.includes("LlamaForCausalLM")) {
    const names = architectures.map((name) => `'${name}'`).join(", ")
    throw new BootFailure(`Model architectures [${names}] are not supported for now. Supported architectures: ['LlamaForCausalLM']`)
  }
  const file = readJsonFile(directory, "config.json", ConfigFile)
  if (file.attention_bias === true || file.mlp_bias === true) throw new BootFailure("Unsupported config.json: attention_bias and mlp_bias must be false")
  if ((file.hidden_act ?? "silu") !== "silu") throw new BootFailure(`Unsupported config.json: hidden_act '${file.hidden_act}'; only silu`)
  if (file.quantization_config) throw new BootFailure("Unsupported config.json: quantized checkpoints cannot be computed by this engine")
  const generation = existsSync(join(directory, "generation_config.json")) ? readJsonFile(directory, "generation_config.json", GenerationFile) : {}
  const heads = file.num_attention_heads
  const kvHeads = file.num_key_value_heads ?? heads
  const headDim = file.head_dim ?? file.hidden_size / heads
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) throw new BootFailure(`Unsupported config.json: head size ${headDim}; it must be an even whole number`)
  if (heads % kvHeads !== 0) throw new BootFailure(`Unsupported config.json: ${heads} attention heads are not a multiple of ${kvHeads} key-value heads`)
  return {
    config: {
      hidden: file.hidden_size,
      intermediate: file.intermediate_size,
      layers: file.num_hidden_layers,
      heads,
      kvHeads,
      headDim,
      vocabulary: file.vocab_size,
      maxLength: file.max_position_embeddings,
      epsilon: file.rms_norm_eps ?? 1e-6,
      tied: file.tie_word_embeddings ?? false,
      rope: ropeOf(file),
      endTokens: new Set([...ids(file.eos_token_id), ...ids(generation.eos_token_id)])
    },
    defaults: {
      temperature: generation.temperature ?? 1,
      topP: generation.top_p ?? 1,
      topK: generation.top_k ?? 0,
      minP: generation.min_p ?? 0,
      repetitionPenalty: generation.repetition_penalty ?? 1
    }
  }
}
