import type { Computation, ModelConfig } from "@seatrial/domain"
import { Option, Predicate, Result, Schema, Struct } from "effect"
import { ConfigReader, type Json } from "./ConfigReader.ts"
import type { Unreadable, UnsupportedArchitecture } from "./failures.ts"
import { familyDefaults } from "./familyDefaults.ts"
import { parseShape } from "./modelShape.ts"
import { missingFact, parseSizes } from "./modelSizes.ts"
import { quantizationOf } from "./quantization.ts"
import { ropeFacts } from "./ropeFacts.ts"
import { textConfig } from "./textConfig.ts"

const decodeNames = Schema.decodeUnknownOption(Schema.NonEmptyArray(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_]{1,128}$/u))))

/** Replaces the nested dictionaries of a configuration by the names that other families use. */
const flattened = (config: Json): Json => {
  const { attn_config: attention, ffn_config: feedForward } = config
  if (config.model_type !== "dbrx" || !Predicate.isObject(attention) || !Predicate.isObject(feedForward)) return config
  const { ffn_hidden_size, moe_num_experts, moe_top_k } = feedForward
  return { ...config, num_key_value_heads: attention.kv_n_heads, ffn_hidden_size, moe_num_experts, moe_top_k }
}

/** Values that a family's class determines. */
const rules = ["sliding_window", "attention_chunk_size", "final_logit_softcapping"]

const word = (value: unknown): string | null => (typeof value === "string" && value.length <= 64 ? value : null)

/** The kind of position encoding: one kind for all layers, or `layers` if they differ. */
const ropeKind = (reader: ConfigReader, rope: Json): string => {
  if (reader.has("rope_local_base_freq") || Object.values(rope).some(Predicate.isObject)) return "layers"
  return word(rope.rope_type ?? rope.type) ?? "default"
}

/** The properties of the computation in addition to sizes. No value here is a reason for a refusal. */
const computationOf = (reader: ConfigReader): Computation => {
  const entry = reader.value("rope_parameters") ?? reader.value("rope_scaling")
  const rope = Predicate.isObject(entry) ? entry : {}
  const turned = reader.value("partial_rotary_factor") ?? rope.partial_rotary_factor
  return {
    activation: word(reader.value("hidden_act") ?? reader.value("hidden_activation")),
    attention_bias: reader.value("attention_bias") === true,
    mlp_bias: reader.value("mlp_bias") === true,
    rope: ropeKind(reader, rope),
    ...(typeof turned === "number" && Number.isFinite(turned) && turned !== 1 ? { partial_rotary_factor: turned } : {})
  }
}

const engineNames: Readonly<Record<string, string>> = { F64: "float64", F32: "float32", F16: "float16", BF16: "bfloat16" }
const engineTypes = new Set(Object.values(engineNames))

/**
 * The type of the values. The stored type if the configuration does not name a type that models are computed in, or
 * names a 16-bit type for 32-bit values. A named 16-bit type for another one is kept, because engines convert to it.
 */
const typeOf = (configured: string | null, storedType: string, quantization: string): string => {
  const stored = engineNames[storedType]
  const typeName = configured?.replace(/^torch\./, "") ?? null
  if (typeName === null || !engineTypes.has(typeName)) return stored ?? "float32"
  return quantization === "none" && (storedType === "F32" || storedType === "F64") ? (stored ?? typeName) : typeName
}

/** The readers of a configuration. */
interface ConfigReaders {
  /** The complete configuration. */
  readonly outer: ConfigReader
  /** The configuration of the layers. */
  readonly own: ConfigReader
  /** The configuration of the layers, with its family's defaults. */
  readonly reader: ConfigReader
  readonly text: Json
  readonly isNested: boolean
  readonly modelType: string
  readonly textType: string
}

const readersOf = (config: Json): Result.Result<ConfigReaders, Unreadable> =>
  Result.gen(function* () {
    const { assumedType, text: inner } = textConfig(config)
    const isNested = inner !== config
    const text = flattened(inner)
    const outer = new ConfigReader(config)
    const own = new ConfigReader(text)
    const modelType = (yield* outer.name("model_type")) ?? (yield* own.name("model_type")) ?? "unknown"
    const textType = (yield* own.name("model_type")) ?? assumedType ?? modelType
    // A flat configuration states its sizes. A nested one often leaves them to its class.
    const defaults = familyDefaults(textType)
    const reader = new ConfigReader(text, isNested ? defaults : Struct.pick(defaults, rules))
    return { outer, own, reader, text, isNested, modelType, textType }
  })

/** Every Transformers class requires these types, and fails the engine's start for another one (`@strict`). */
const checkKinds = (reader: ConfigReader): Result.Result<void, Unreadable> =>
  Result.gen(function* () {
    yield* reader.kind("a number", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps")
    yield* reader.kind("true or false", "tie_word_embeddings", "attention_bias", "mlp_bias")
    yield* reader.kind("a string", "hidden_act")
  })

const configuredType = ({ outer, own }: ConfigReaders): Result.Result<string | null, Unreadable> =>
  Result.gen(function* () {
    return (yield* own.name("dtype")) ?? (yield* own.name("torch_dtype")) ?? (yield* outer.name("dtype")) ?? (yield* outer.name("torch_dtype"))
  })

/**
 * The facts of a `config.json` that serving depends on. `storedType` is the safetensors type with the most bytes; it
 * applies if the configuration names no valid type. Fails with `Unreadable` for a malformed value, and with
 * `UnsupportedArchitecture` if a required fact is missing or a kind of layer is unknown.
 */
export const parseModelConfig = (config: Json, storedType: string): Result.Result<ModelConfig, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    const readers = yield* readersOf(config)
    const { isNested, modelType, outer, reader, text, textType } = readers
    const architectures = decodeNames(config.architectures ?? text.architectures)
    if (Option.isNone(architectures)) return yield* missingFact("its architecture")
    const { native_context, vocab_size, ...heads } = yield* parseSizes(reader, outer, textType)
    const shape = yield* parseShape(reader, outer, { model_type: textType, ...heads })
    const rope = ropeFacts(reader, isNested)
    yield* checkKinds(reader)
    const quantization = yield* quantizationOf(config, text)
    const dtype = yield* configuredType(readers)
    return {
      architecture: architectures.value[0],
      model_type: modelType,
      ...heads,
      vocab_size,
      native_context,
      sliding_window: shape.layers.reduce<number | null>((window, group) => (group.kind === "sliding" ? group.window : window), null),
      dtype: typeOf(dtype, storedType, quantization.method),
      quantization: quantization.method,
      ...(quantization.scheme === null ? {} : { quantization_scheme: quantization.scheme }),
      shape,
      ...(rope === null ? {} : { rope }),
      computation: computationOf(reader)
    }
  })

/** Whether a configuration asks for Python code of the repository: an `auto_map` at any depth. */
export const asksForCode = (value: unknown): boolean => {
  const pending: Array<unknown> = [value]
  while (pending.length > 0) {
    const item = pending.pop()
    if (!Predicate.isObjectOrArray(item)) continue
    if (Predicate.isObject(item) && Object.hasOwn(item, "auto_map") && Predicate.isNotNullish(item.auto_map)) return true
    for (const inner of Object.values(item)) pending.push(inner)
  }
  return false
}

const Named = Schema.Array(Schema.Struct({ name: Schema.String, template: Schema.String }))

/** A chat template as written; null if it is blank, which engines cannot use. */
export const writtenTemplate = (template: string): string | null => (template.trim() === "" ? null : template)

/** The only template, or the first of these names among named ones. */
const templateBy = ({ chat_template: value }: Json, names: ReadonlyArray<string>): string | null => {
  if (typeof value === "string") return writtenTemplate(value)
  return Option.match(Schema.decodeUnknownOption(Named)(value), {
    onNone: () => null,
    onSome: (templates) => writtenTemplate(names.flatMap((wanted) => templates.find(({ name }) => name === wanted)?.template ?? [])[0] ?? "")
  })
}

/**
 * The chat template of a `tokenizer_config.json` or `chat_template.json`: the only one, or the one named `default`,
 * which engines require.
 */
export const chatTemplateOf = (tokenizerConfig: Json): string | null => templateBy(tokenizerConfig, ["default"])

/**
 * The template that a tokenizer selects for requests with tools (`get_chat_template` of Transformers), as in vLLM
 * without an explicit template.
 */
export const toolTemplateOf = (tokenizerConfig: Json): string | null => templateBy(tokenizerConfig, ["tool_use", "default"])
