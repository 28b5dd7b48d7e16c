import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { jsonOfPython, optionalNullable, samplingDefaults } from "@seatrial/domain"
import { computationProblem, type RopeConfig, referenceLimits, referenceRope } from "@seatrial/engines/reference"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { BootFailure } from "./BootFailure.ts"

const Count = Schema.Int.check(Schema.isGreaterThan(0))
const Ids = Schema.Union([Schema.Int, Schema.Array(Schema.Int)])

const RopeFields = Schema.Record(Schema.String, Schema.Unknown)

const ConfigFile = Schema.Struct({
  architectures: Schema.Array(Schema.String),
  hidden_size: Count,
  intermediate_size: Count,
  num_hidden_layers: Count,
  num_attention_heads: Count,
  num_key_value_heads: optionalNullable(Count),
  head_dim: optionalNullable(Count),
  vocab_size: Count,
  max_position_embeddings: optionalNullable(Count),
  rms_norm_eps: optionalNullable(Schema.Finite),
  rope_theta: optionalNullable(Schema.Finite),
  rope_scaling: optionalNullable(RopeFields),
  rope_parameters: optionalNullable(RopeFields),
  partial_rotary_factor: optionalNullable(Schema.Finite),
  tie_word_embeddings: optionalNullable(Schema.Boolean),
  attention_bias: optionalNullable(Schema.Boolean),
  mlp_bias: optionalNullable(Schema.Boolean),
  hidden_act: optionalNullable(Schema.String),
  layer_types: optionalNullable(Schema.Array(Schema.String)),
  sliding_window: optionalNullable(Count),
  use_sliding_window: optionalNullable(Schema.Boolean),
  eos_token_id: optionalNullable(Ids),
  quantization_config: optionalNullable(Schema.Unknown)
})

const anyObject = Schema.Record(Schema.String, Schema.Unknown)
const decodeConfig = Schema.decodeUnknownResult(ConfigFile)

const GenerationFile = Schema.StructWithRest(Schema.Struct({ eos_token_id: optionalNullable(Ids) }), [Schema.Record(Schema.String, Schema.Unknown)])

/** The dimensions of a Llama model, and the tokens that end an answer. */
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

/** The repository's sampling parameters for requests that set none. */
export interface SamplingDefaults {
  readonly temperature: number
  readonly topP: number
  readonly topK: number
  readonly minP: number
  readonly repetitionPenalty: number
}

/** Reads and decodes a JSON file of the model directory. Throws `BootFailure` if it is missing or invalid. */
export const readJsonFile = <S extends Schema.ConstraintDecoder<unknown>>(directory: string, file: string, schema: S): S["Type"] => {
  let text: string
  try {
    text = readFileSync(join(directory, file), "utf8")
  } catch {
    throw new BootFailure(`Invalid repository ID or local directory specified: '${directory}' has no ${file}`)
  }
  const decoded = Schema.decodeUnknownResult(Schema.fromJsonString(schema))(jsonOfPython(text))
  if (Result.isFailure(decoded)) throw new BootFailure(`Cannot read ${file}: ${decoded.failure.message.replaceAll(/\s+/g, " ")}`)
  return decoded.success
}

const ids = (value: number | ReadonlyArray<number> | null | undefined): ReadonlyArray<number> => (typeof value === "number" ? [value] : (value ?? []))

const ropeOf = (file: typeof ConfigFile.Type, maxLength: number): RopeConfig => {
  const fields = file.rope_parameters ?? file.rope_scaling ?? {}
  const theta = typeof fields.rope_theta === "number" ? fields.rope_theta : (file.rope_theta ?? 10_000)
  const rope = referenceRope(fields, theta, maxLength)
  if (typeof rope === "string") throw new BootFailure(`Unsupported config.json: ${rope}`)
  return rope
}

type Overrides = Readonly<Record<string, unknown>>

/** Throws `BootFailure` for an architecture that the engine does not support. */
const refuseArchitecture = (directory: string) => {
  const configuration = readJsonFile(directory, "config.json", Schema.Struct({ architectures: optionalNullable(Schema.Array(Schema.String)) }))
  const architectures = configuration.architectures ?? []
  if (architectures.includes(referenceLimits.architecture)) return
  const names = architectures.map((name) => `'${name}'`).join(", ")
  throw new BootFailure(`Model architectures [${names}] are not supported for now. Supported architectures: ['${referenceLimits.architecture}']`)
}

const readConfigFile = (directory: string, overrides: Overrides): typeof ConfigFile.Type => {
  refuseArchitecture(directory)
  const decoded = decodeConfig({ ...readJsonFile(directory, "config.json", anyObject), ...overrides })
  if (Result.isFailure(decoded)) throw new BootFailure(`Cannot read config.json: ${decoded.failure.message.replaceAll(/\s+/g, " ")}`)
  if (decoded.success.quantization_config) throw new BootFailure("Unsupported config.json: quantized checkpoints cannot be computed by this engine")
  return decoded.success
}

/** Whether a layer sees only the last positions. */
const isWindowed = ({ layer_types, sliding_window, use_sliding_window }: typeof ConfigFile.Type): boolean =>
  layer_types ? layer_types.some((kind) => kind !== "full_attention") : typeof sliding_window === "number" && use_sliding_window !== false

/** The heads of the attention. Throws `BootFailure` for a model that the engine cannot compute. */
const headsOf = (file: typeof ConfigFile.Type): Pick<ModelConfig, "headDim" | "heads" | "kvHeads"> => {
  const heads = file.num_attention_heads
  const kvHeads = file.num_key_value_heads ?? heads
  const headDim = file.head_dim ?? file.hidden_size / heads
  const rotated = file.partial_rotary_factor ?? (file.rope_parameters ?? file.rope_scaling)?.partial_rotary_factor
  const problem = computationProblem({
    activation: file.hidden_act ?? null,
    attention_bias: file.attention_bias === true,
    mlp_bias: file.mlp_bias === true,
    partial_rotary_factor: typeof rotated === "number" ? rotated : undefined,
    windowed: isWindowed(file),
    heads,
    kvHeads,
    headDim
  })
  if (problem !== null) throw new BootFailure(`Unsupported config.json: ${problem}`)
  return { heads, kvHeads, headDim }
}

const defaultsOf = (generation: Readonly<Record<string, unknown>>): SamplingDefaults => {
  const { min_p, repetition_penalty, temperature, top_k, top_p } = samplingDefaults(generation)
  return { temperature: temperature ?? 1, topP: top_p ?? 1, topK: top_k ?? 0, minP: min_p ?? 0, repetitionPenalty: repetition_penalty ?? 1 }
}

/**
 * Reads `config.json`, in which `overrides` replace members, and the optional `generation_config.json`. Throws
 * `BootFailure` for a model that the engine cannot compute.
 */
export const readModelConfig = (directory: string, overrides: Overrides = {}): { readonly config: ModelConfig; readonly defaults: SamplingDefaults } => {
  const file = readConfigFile(directory, overrides)
  const generation = existsSync(join(directory, "generation_config.json")) ? readJsonFile(directory, "generation_config.json", GenerationFile) : {}
  const maxLength = file.max_position_embeddings ?? referenceLimits.assumedContext
  return {
    config: {
      hidden: file.hidden_size,
      intermediate: file.intermediate_size,
      layers: file.num_hidden_layers,
      ...headsOf(file),
      vocabulary: file.vocab_size,
      maxLength,
      epsilon: file.rms_norm_eps ?? 1e-6,
      tied: file.tie_word_embeddings ?? false,
      rope: ropeOf(file, maxLength),
      endTokens: new Set([...ids(file.eos_token_id), ...ids(generation.eos_token_id)])
    },
    defaults: defaultsOf(generation)
  }
}
