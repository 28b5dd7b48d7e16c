import type { ModelConfig } from "@seatrial/domain"
import { Option, Predicate, Result, Schema } from "effect"
import { Unreadable } from "./failures.ts"

type Json = Readonly<Record<PropertyKey, unknown>>

/** The configuration is of a kind of model that no engine here serves; `reason` may be shown. */
export class UnsupportedArchitecture extends Schema.TaggedError<UnsupportedArchitecture>()("UnsupportedArchitecture", { reason: Schema.String }) {}

const decodeCount = Schema.decodeUnknownOption(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 })))
const decodeName = Schema.decodeUnknownOption(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.-]{1,128}$/u)))
const decodeNames = Schema.decodeUnknownOption(Schema.NonEmptyArray(Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_]{1,128}$/u))))

/** The layers' own configuration, where a multimodal model's wraps it. */
const unwrap = (config: Json): Json => {
  for (const key of ["text_config", "llm_config"]) {
    const inner = config[key]
    if (Predicate.isObject(inner)) return inner
  }
  return config
}

const contextKeys = ["max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"]

const engineNames: Readonly<Record<string, string>> = { F64: "float64", F32: "float32", F16: "float16", BF16: "bfloat16" }

/**
 * What serving depends on in a `config.json`. `storedType` is the safetensors type that holds most bytes: it stands in where the configuration names none.
 * Fails with `Unreadable` where a value is malformed, with `UnsupportedArchitecture` where a fact that every served architecture has is missing.
 */
export const parseModelConfig = (config: Json, storedType: string): Result.Result<ModelConfig, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    const text = unwrap(config)
    const missing = (what: string) => Result.fail(new UnsupportedArchitecture({ reason: `config.json does not state ${what}.` }))
    const malformed = (key: string, what: string) => Result.fail(new Unreadable({ reason: `config.json gives ${key} as something else than ${what}.` }))

    /** The first of the keys that is there, as a whole number from 1. */
    const count = (...keys: ReadonlyArray<string>): Result.Result<number | null, Unreadable> => {
      const key = keys.find((key) => Predicate.isNotNullish(text[key]))
      if (key === undefined) return Result.succeed(null)
      return Option.match(decodeCount(text[key]), { onNone: () => malformed(key, "a whole number from 1"), onSome: Result.succeed })
    }
    const name = (holder: Json, key: string): Result.Result<string | null, Unreadable> =>
      Predicate.isNullish(holder[key])
        ? Result.succeed(null)
        : Option.match(decodeName(holder[key]), { onNone: () => malformed(key, "a name"), onSome: Result.succeed })

    const architectures = decodeNames(config.architectures ?? text.architectures)
    if (Option.isNone(architectures)) return yield* missing("its architecture")
    const num_layers = yield* count("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    const hidden_size = yield* count("hidden_size", "n_embd", "d_model")
    const num_attention_heads = yield* count("num_attention_heads", "n_head", "num_heads", "n_heads")
    const vocab_size = yield* count("vocab_size", "padded_vocab_size")
    if (num_layers === null) return yield* missing("the number of its layers")
    if (hidden_size === null) return yield* missing("its hidden size")
    if (num_attention_heads === null) return yield* missing("the number of its attention heads")
    if (vocab_size === null) return yield* missing("the size of its vocabulary")

    let native_context: number | null = null
    for (const key of contextKeys) {
      const limit = yield* count(key)
      if (limit !== null && (native_context === null || limit < native_context)) native_context = limit
    }
    if (native_context === null) return yield* missing("how long its context may be")

    const kvHeads = yield* count("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
    const head_dim = (yield* count("head_dim")) ?? Math.floor(hidden_size / num_attention_heads)
    if (head_dim < 1) return yield* malformed("num_attention_heads", "at most the hidden size")
    const sliding = text.use_sliding_window === false ? null : yield* count("sliding_window")
    const dtype = (yield* name(text, "dtype")) ?? (yield* name(text, "torch_dtype")) ?? (yield* name(config, "dtype")) ?? (yield* name(config, "torch_dtype"))
    const quantization = config.quantization_config ?? text.quantization_config
    return {
      architecture: architectures.value[0],
      model_type: (yield* name(config, "model_type")) ?? (yield* name(text, "model_type")) ?? "unknown",
      num_layers,
      hidden_size,
      num_attention_heads,
      num_kv_heads: kvHeads ?? (text.multi_query === true ? 1 : num_attention_heads),
      head_dim,
      vocab_size,
      native_context,
      sliding_window: sliding,
      dtype: dtype ?? engineNames[storedType] ?? "float32",
      quantization: Predicate.isObject(quantization) ? ((yield* name(quantization, "quant_method")) ?? "unknown") : "none"
    }
  })

/** Whether a configuration asks for Python of the repository: an `auto_map` anywhere in it. */
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

/** The chat template of a `tokenizer_config.json` or `chat_template.json`: its only one, or the one named `default`. */
export const chatTemplateOf = (tokenizerConfig: Json): string | null => {
  const value = tokenizerConfig.chat_template
  if (typeof value === "string") return value
  return Option.match(Schema.decodeUnknownOption(Named)(value), {
    onNone: () => null,
    onSome: (templates) => templates.find(({ name }) => name === "default")?.template ?? templates[0]?.template ?? null
  })
}
