import { optionalNullable } from "@seatrial/domain"
import { Option, Predicate, Result, Schema } from "effect"
import { Unreadable } from "./failures.ts"

const Rank = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8_192 }))
const Alpha = Schema.Finite.check(Schema.isGreaterThan(0))
const ModuleName = Schema.String.check(Schema.isBetweenLength(1, 256))
const Pattern = <S extends Schema.Constraint>(value: S) => Schema.Record(ModuleName, value).check(Schema.isMaxProperties(1_000))
const Layers = Schema.Union([Schema.Int, Schema.Array(Schema.Int).check(Schema.isMaxLength(1_000))])
const LayersPattern = Schema.Union([Schema.String, Schema.Array(Schema.String).check(Schema.isMaxLength(100))])

/** The members of a LoRA adapter's `adapter_config.json` that determine how it is applied. */
const Config = Schema.Struct({
  r: Rank,
  lora_alpha: Alpha,
  target_modules: Schema.Union([ModuleName, Schema.Array(ModuleName).check(Schema.isBetweenLength(1, 1_000))]),
  rank_pattern: optionalNullable(Pattern(Rank)),
  alpha_pattern: optionalNullable(Pattern(Alpha)),
  use_rslora: optionalNullable(Schema.Boolean),
  layers_to_transform: optionalNullable(Layers),
  layers_pattern: optionalNullable(LayersPattern),
  base_model_name_or_path: optionalNullable(Schema.String),
  revision: optionalNullable(Schema.String)
})
const decode = Schema.decodeUnknownOption(Config)

/** The required form of each member, in the order in which problems are reported. */
const expected = {
  r: "a whole number from 1 to 8192",
  lora_alpha: "a number above 0",
  target_modules: "a string, or a list of 1 to 1000 strings",
  rank_pattern: "a whole number from 1 to 8192 for each of at most 1000 modules",
  alpha_pattern: "a number above 0 for each of at most 1000 modules",
  use_rslora: "true or false",
  layers_to_transform: "a layer's number or a list of at most 1000",
  layers_pattern: "a string or a list of at most 100",
  base_model_name_or_path: "a text",
  revision: "a text"
} satisfies Record<keyof typeof Config.fields, string>

const checks = Object.entries(Config.fields).map(([name, field]) => [name, Schema.decodeUnknownOption(Schema.Struct({ [name]: field }))] as const)

/** The first invalid member, its value, and the required form. */
const notCredible = (config: Readonly<Record<PropertyKey, unknown>>): string => {
  const wrong = checks.find(([, decodeMember]) => Option.isNone(decodeMember(config)))?.[0] ?? ""
  const words = Object.entries(expected).find(([name]) => name === wrong)?.[1]
  const value = config[wrong]
  const problem = value === undefined || value === null ? `lacks ${wrong}` : `has ${JSON.stringify(value).slice(0, 40)} for ${wrong}`
  return `Its adapter_config.json ${problem}, which must be ${words}.`
}

/** Members that do not affect how a trained adapter is applied. */
const indifferent = new Set([
  ...Object.keys(Config.fields),
  "auto_mapping",
  "ensure_weight_tying",
  "eva_config",
  "exclude_modules",
  "inference_mode",
  "lora_dropout",
  "lora_ga_config",
  "megatron_core",
  "peft_type",
  "peft_version",
  "qalora_group_size",
  "task_type"
])

/**
 * Members that vLLM (`vllm/lora/peft_helper.py`) or SGLang (`sglang/srt/lora/lora_config.py`) rejects or silently
 * ignores.
 */
const unapplied: ReadonlyMap<string, string> = new Map(
  Object.entries({
    use_dora: "DoRA (use_dora)",
    modules_to_save: "complete modules in addition to its low-rank pairs (modules_to_save)",
    lora_bias: "biases (lora_bias)",
    trainable_token_indices: "tokens of its own (trainable_token_indices)",
    target_parameters: "parameters outside of linear modules (target_parameters)",
    alora_invocation_tokens: "aLoRA (alora_invocation_tokens)",
    layer_replication: "repeated layers (layer_replication)",
    fan_in_fan_out: "transposed weights (fan_in_fan_out)",
    use_qalora: "QALoRA (use_qalora)",
    use_bdlora: "BD-LoRA (use_bdlora)"
  })
)

/** Initializations that only set the adapter's initial weights. All other named ones also change the base. */
const plainBeginnings = new Set(["gaussian", "eva", "orthogonal", "mica", "lora_ga"])

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (Array.isArray(value) ? value.length === 0 : Predicate.isObject(value) && Object.keys(value).length === 0)

export interface AdapterConfig {
  readonly rank: number
  readonly alpha: number
  readonly rslora: boolean
  readonly rankPattern: Readonly<Record<string, number>>
  readonly alphaPattern: Readonly<Record<string, number>>
  readonly target: string | ReadonlyArray<string>
  /** The only adapted layers, if any are listed, and the names that precede a layer's number. */
  readonly layers: ReadonlyArray<number>
  readonly layersPattern: ReadonlyArray<string>
  /** The value in the file: a repository of the hub or anything else. */
  readonly base: string | null
  /** The base's ref; null for its default branch. */
  readonly revision: string | null
}

/** The first characters of a text for a message; `unknown` for any other value. */
const quoted = (value: unknown): string => (typeof value === "string" ? value.slice(0, 40) : "unknown")

/** One reason why no engine applies an adapter, as a sentence, or null. */
type Step = (config: Readonly<Record<PropertyKey, unknown>>) => string | null

const kindProblem: Step = ({ peft_type: kind }) =>
  typeof kind === "string" && kind.toUpperCase() === "LORA" ? null : `It is an adapter of the kind ${quoted(kind)}; only LoRA is served.`

const taskProblem: Step = ({ task_type: task }) =>
  isEmpty(task) || task === "CAUSAL_LM" ? null : `It is made for the task ${quoted(task)}; only adapters of models that write text (CAUSAL_LM) are served.`

/** Whether a member does not matter, or is checked by a separate step. */
const isKnownMember = (name: string): boolean => name === "bias" || name === "init_lora_weights" || indifferent.has(name) || /_config$/.test(name)

const memberProblem: Step = (config) => {
  for (const [name, value] of Object.entries(config)) {
    if (isEmpty(value)) continue
    const what = unapplied.get(name)
    if (what !== undefined) return `It has ${what}, which no engine applies.`
    if (!isKnownMember(name)) return `Its adapter_config.json sets ${name.slice(0, 60)}, which no supported engine is known to apply.`
  }
  return null
}

const biasProblem: Step = ({ bias }) => (isEmpty(bias) || bias === "none" ? null : "It has biases (bias), which no engine applies.")

const initializationProblem: Step = ({ init_lora_weights: initialization }) =>
  typeof initialization !== "string" || plainBeginnings.has(initialization.toLowerCase())
    ? null
    : `Its training started from modified base weights (init_lora_weights ${quoted(initialization)}), which no engine reproduces. Convert it to a regular LoRA adapter.`

/** In the order in which problems are reported. */
const steps: ReadonlyArray<Step> = [kindProblem, taskProblem, memberProblem, biasProblem, initializationProblem]

const adapterConfigOf = (config: typeof Config.Type): AdapterConfig => ({
  rank: config.r,
  alpha: config.lora_alpha,
  rslora: config.use_rslora ?? false,
  rankPattern: config.rank_pattern ?? {},
  alphaPattern: config.alpha_pattern ?? {},
  target: config.target_modules,
  layers: [config.layers_to_transform ?? []].flat(),
  layersPattern: [config.layers_pattern ?? []].flat().filter((pattern) => pattern !== ""),
  base: config.base_model_name_or_path ?? null,
  revision: config.revision === undefined || config.revision === "" ? null : config.revision
})

/** Reads the configuration of an adapter. Fails if no engine would apply it. */
export const parseAdapterConfig = (config: Readonly<Record<PropertyKey, unknown>>): Result.Result<AdapterConfig, Unreadable> => {
  // The reason contains text from the repository.
  const fail = (reason: string) => Result.fail(new Unreadable({ reason: reason.replace(/\p{Cc}/gu, " ") }))
  for (const step of steps) {
    const problem = step(config)
    if (problem !== null) return fail(problem)
  }
  const known = decode(config)
  return Option.isNone(known) ? fail(notCredible(config)) : Result.succeed(adapterConfigOf(known.value))
}
