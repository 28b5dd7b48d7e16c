import type { Computation, ModelConfig } from "@seatrial/domain"
import { Option, Predicate, Result, Schema, Struct } from "effect"
import { ConfigReader, type Json, limits } from "./ConfigReader.ts"
import { Unreadable, UnsupportedArchitecture } from "./failures.ts"
import { familyDefaults } from "./familyDefaults.ts"
import { dividedTypes, rotatedTypes } from "./generated/configurationDefaults.ts"
import { recurrentTypes } from "./layerKinds.ts"
import { parseShape } from "./modelShape.ts"
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

const contextKeys = [
  "max_position_embeddings",
  "n_positions",
  "max_seq_len",
  "seq_length",
  "model_max_length",
  "max_sequence_length",
  "max_seq_length",
  "seq_len",
  "max_target_positions"
]

/**
 * Context length in tokens if the configuration states none (vLLM's `_get_and_verify_max_len`, SGLang's
 * `get_context_length`).
 */
const assumedContext = 2_048

/** The properties of the computation in addition to sizes. No value here is a reason for a refusal. */
const computationOf = (reader: ConfigReader): Computation => {
  const word = (value: unknown) => (typeof value === "string" && value.length <= 64 ? value : null)
  const rope = reader.value("rope_parameters") ?? reader.value("rope_scaling")
  const dictionary = Predicate.isObject(rope) ? rope : {}
  const turned = reader.value("partial_rotary_factor") ?? dictionary.partial_rotary_factor
  const layers = reader.has("rope_local_base_freq") || Object.values(dictionary).some(Predicate.isObject)
  return {
    activation: word(reader.value("hidden_act") ?? reader.value("hidden_activation")),
    attention_bias: reader.value("attention_bias") === true,
    mlp_bias: reader.value("mlp_bias") === true,
    rope: layers ? "layers" : (word(dictionary.rope_type ?? dictionary.type) ?? "default"),
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

/** Whether the configuration rotates less than a whole head by position. */
const rotatesPart = (reader: ConfigReader): boolean => {
  const ropeValue = reader.value("rope_parameters") ?? reader.value("rope_scaling")
  const dictionaries = Predicate.isObject(ropeValue) ? [ropeValue, ...Object.values(ropeValue)] : []
  return reader.has("partial_rotary_factor") || dictionaries.some((dictionary) => Predicate.hasProperty(dictionary, "partial_rotary_factor"))
}

/**
 * The facts of a `config.json` that serving depends on. `storedType` is the safetensors type with the most bytes; it
 * applies if the configuration names no valid type. Fails with `Unreadable` for a malformed value, and with
 * `UnsupportedArchitecture` if a required fact is missing or a kind of layer is unknown.
 */
export const parseModelConfig = (config: Json, storedType: string): Result.Result<ModelConfig, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    const { assumedType, text: inner } = textConfig(config)
    const nested = inner !== config
    const text = flattened(inner)
    const missing = (what: string) => Result.fail(new UnsupportedArchitecture({ reason: `config.json does not state ${what}.` }))
    const outer = new ConfigReader(config)
    const own = new ConfigReader(text)
    const model_type = (yield* outer.name("model_type")) ?? (yield* own.name("model_type")) ?? "unknown"
    const textType = (yield* own.name("model_type")) ?? assumedType ?? model_type
    // A flat configuration states its sizes. A nested one often leaves them to its class.
    const defaults = familyDefaults(textType)
    const reader = new ConfigReader(text, nested ? defaults : Struct.pick(defaults, rules))

    const architectures = decodeNames(config.architectures ?? text.architectures)
    if (Option.isNone(architectures)) return yield* missing("its architecture")
    // LongCat's first name counts attentions, of which a layer has two.
    const layerNames = textType.startsWith("longcat_flash") && reader.has("num_layers") ? [] : ["num_hidden_layers"]
    const counted = yield* reader.count(limits.layers, ...layerNames, "n_layer", "num_layers", "n_layers")
    // Newer configurations of Nemotron-H only list their layers.
    const num_layers = counted ?? (yield* reader.words("layers_block_type"))?.length ?? null
    const hidden_size = yield* reader.count(limits.width, "hidden_size", "n_embd", "n_embed", "d_model")
    const recurrent = recurrentTypes.has(textType)
    // Without attention, the GPUs divide the heads of the state, or the individual channels.
    const channels = recurrent ? ((yield* reader.count(limits.heads, "num_heads")) ?? (yield* reader.count(limits.heads, "intermediate_size"))) : null
    const num_attention_heads = channels ?? (yield* reader.count(limits.heads, "num_attention_heads", "n_head", "num_heads", "n_heads"))
    const vocab_size = (yield* reader.count(limits.vocabulary, "vocab_size", "padded_vocab_size")) ?? (yield* outer.count(limits.vocabulary, "vocab_size"))
    if (num_layers === null) return yield* missing("the number of its layers")
    if (hidden_size === null) return yield* missing("its hidden size")
    if (num_attention_heads === null) return yield* missing("the number of its attention heads")
    if (vocab_size === null) return yield* missing("the size of its vocabulary")

    let native_context: number | null = null
    for (const key of contextKeys) {
      const limit = yield* reader.count(limits.tokens, key)
      if (limit !== null && (native_context === null || limit < native_context)) native_context = limit
    }
    // The default of both engines: states have no limit of their own, and Falcon's first models do not state one.
    if (native_context === null) native_context = assumedContext

    const head_dim =
      (yield* reader.countOrNone(limits.width, "head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels")) ??
      (recurrent ? 1 : Math.floor(hidden_size / num_attention_heads))
    if (head_dim < 1)
      return yield* Result.fail(new Unreadable({ reason: "config.json gives num_attention_heads as something else than at most the hidden size." }))
    // Their classes require it even if the head size is given.
    if (dividedTypes.has(textType) && hidden_size % num_attention_heads !== 0)
      return yield* Result.fail(
        new Unreadable({
          reason: `config.json gives ${num_attention_heads} attention heads, which do not divide the hidden size of ${hidden_size}: no engine starts with it.`
        })
      )
    // Transformers accepts test models with at most four values per head.
    if (rotatedTypes.has(textType) && head_dim > 4 && head_dim % 2 === 1 && !rotatesPart(reader))
      return yield* Result.fail(
        new Unreadable({
          reason: `config.json gives attention heads of ${head_dim} values, an odd number: positions turn two at a time, and no engine starts with it.`
        })
      )
    const byLayer = yield* reader.counts(limits.heads, "num_key_value_heads", "num_kv_heads")
    const kvHeads =
      byLayer === null
        ? yield* reader.count(limits.heads, "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups")
        : Math.max(1, ...byLayer)
    // Falcon's first architecture has one key-value head, whatever it states: copies of its configuration state the
    // number of heads.
    const multiQuery = reader.value("multi_query") === true && reader.value("new_decoder_architecture") !== true
    const num_kv_heads = multiQuery && textType === "falcon" ? 1 : (kvHeads ?? (multiQuery ? 1 : num_attention_heads))
    const heads = { model_type: textType, num_layers, hidden_size, num_attention_heads, num_kv_heads, head_dim }
    const shape = yield* parseShape(reader, outer, heads)
    const rope = ropeFacts(reader, nested)
    // Every Transformers class requires this type, and fails the engine's start for another one (`@strict`).
    yield* reader.kind("a number", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps")
    yield* reader.kind("true or false", "tie_word_embeddings", "attention_bias", "mlp_bias")
    yield* reader.kind("a string", "hidden_act")
    const quantization = yield* quantizationOf(config, text)
    const dtype = (yield* own.name("dtype")) ?? (yield* own.name("torch_dtype")) ?? (yield* outer.name("dtype")) ?? (yield* outer.name("torch_dtype"))
    return {
      architecture: architectures.value[0],
      model_type,
      num_layers,
      hidden_size,
      num_attention_heads,
      num_kv_heads,
      head_dim,
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
