import type { ModelConfig } from "@seatrial/domain"
import { Predicate, Result } from "effect"
import { type ConfigReader, limits } from "./ConfigReader.ts"
import { Unreadable, UnsupportedArchitecture } from "./failures.ts"
import { dividedTypes, rotatedTypes } from "./generated/configurationDefaults.ts"
import { recurrentTypes } from "./layerKinds.ts"

type Read<A> = Result.Result<A, Unreadable | UnsupportedArchitecture>

/** The sizes of a model that every configuration states, in one way or another. */
type ModelSizes = Pick<ModelConfig, "num_layers" | "hidden_size" | "num_attention_heads" | "num_kv_heads" | "head_dim" | "vocab_size" | "native_context">

/** Refuses a configuration without a required fact. */
export const missingFact = (what: string) => Result.fail(new UnsupportedArchitecture({ reason: `config.json does not state ${what}.` }))

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

/** Whether the configuration rotates less than a whole head by position. */
const rotatesPart = (reader: ConfigReader): boolean => {
  const ropeValue = reader.value("rope_parameters") ?? reader.value("rope_scaling")
  const dictionaries = Predicate.isObject(ropeValue) ? [ropeValue, ...Object.values(ropeValue)] : []
  return reader.has("partial_rotary_factor") || dictionaries.some((dictionary) => Predicate.hasProperty(dictionary, "partial_rotary_factor"))
}

const layerCount = (reader: ConfigReader, textType: string): Read<number | null> =>
  Result.gen(function* () {
    // LongCat's first name counts attentions, of which a layer has two.
    const layerNames = textType.startsWith("longcat_flash") && reader.has("num_layers") ? [] : ["num_hidden_layers"]
    const counted = yield* reader.count(limits.layers, ...layerNames, "n_layer", "num_layers", "n_layers")
    // Newer configurations of Nemotron-H only list their layers.
    return counted ?? (yield* reader.words("layers_block_type"))?.length ?? null
  })

const attentionHeads = (reader: ConfigReader, isRecurrent: boolean): Read<number | null> =>
  Result.gen(function* () {
    // Without attention, the GPUs divide the heads of the state, or the individual channels.
    const channels = isRecurrent ? ((yield* reader.count(limits.heads, "num_heads")) ?? (yield* reader.count(limits.heads, "intermediate_size"))) : null
    return channels ?? (yield* reader.count(limits.heads, "num_attention_heads", "n_head", "num_heads", "n_heads"))
  })

/** The sizes without which nothing can be computed. */
const requiredSizes = (reader: ConfigReader, outer: ConfigReader, textType: string) =>
  Result.gen(function* () {
    const num_layers = yield* layerCount(reader, textType)
    const hidden_size = yield* reader.count(limits.width, "hidden_size", "n_embd", "n_embed", "d_model")
    const num_attention_heads = yield* attentionHeads(reader, recurrentTypes.has(textType))
    const vocab_size = (yield* reader.count(limits.vocabulary, "vocab_size", "padded_vocab_size")) ?? (yield* outer.count(limits.vocabulary, "vocab_size"))
    if (num_layers === null) return yield* missingFact("the number of its layers")
    if (hidden_size === null) return yield* missingFact("its hidden size")
    if (num_attention_heads === null) return yield* missingFact("the number of its attention heads")
    if (vocab_size === null) return yield* missingFact("the size of its vocabulary")
    return { num_layers, hidden_size, num_attention_heads, vocab_size }
  })

/** The smallest of the stated lengths. */
const contextLength = (reader: ConfigReader): Read<number> =>
  Result.gen(function* () {
    let shortest: number | null = null
    for (const key of contextKeys) {
      const limit = yield* reader.count(limits.tokens, key)
      if (limit !== null && (shortest === null || limit < shortest)) shortest = limit
    }
    // The default of both engines: states have no separate limit, and Falcon's first models do not state one.
    return shortest ?? assumedContext
  })

/** Why no engine starts with heads of this size, as a sentence; null if one does. */
const headProblem = (
  reader: ConfigReader,
  textType: string,
  { head_dim, hidden_size, num_attention_heads }: Pick<ModelSizes, "head_dim" | "hidden_size" | "num_attention_heads">
): string | null => {
  if (head_dim < 1) return "num_attention_heads in config.json must be at most the hidden size."
  // Their classes require it even if the head size is given.
  if (dividedTypes.has(textType) && hidden_size % num_attention_heads !== 0)
    return `config.json gives ${num_attention_heads} attention heads, which do not divide the hidden size of ${hidden_size}: no engine starts with it.`
  // Transformers accepts test models with at most four values per head.
  if (rotatedTypes.has(textType) && head_dim > 4 && head_dim % 2 === 1 && !rotatesPart(reader))
    return `config.json gives attention heads of ${head_dim} values, an odd number: rotary position embeddings need an even number, and no engine starts with it.`
  return null
}

const keyValueHeads = (reader: ConfigReader, textType: string, attention: number): Read<number> =>
  Result.gen(function* () {
    const byLayer = yield* reader.counts(limits.heads, "num_key_value_heads", "num_kv_heads")
    const kvHeads =
      byLayer === null
        ? yield* reader.count(limits.heads, "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups")
        : Math.max(1, ...byLayer)
    // Falcon's first architecture has one key-value head, even if it states more: copies of its configuration state the
    // number of heads.
    const multiQuery = reader.value("multi_query") === true && reader.value("new_decoder_architecture") !== true
    return multiQuery && textType === "falcon" ? 1 : (kvHeads ?? (multiQuery ? 1 : attention))
  })

/** The sizes of the layers. `outer`: the complete configuration, which may state the size of the vocabulary. */
export const parseSizes = (reader: ConfigReader, outer: ConfigReader, textType: string): Read<ModelSizes> =>
  Result.gen(function* () {
    const required = yield* requiredSizes(reader, outer, textType)
    const { hidden_size, num_attention_heads } = required
    const native_context = yield* contextLength(reader)
    const head_dim =
      (yield* reader.countOrNone(limits.width, "head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels")) ??
      (recurrentTypes.has(textType) ? 1 : Math.floor(hidden_size / num_attention_heads))
    const problem = headProblem(reader, textType, { head_dim, hidden_size, num_attention_heads })
    if (problem !== null) return yield* Result.fail(new Unreadable({ reason: problem }))
    const num_kv_heads = yield* keyValueHeads(reader, textType, num_attention_heads)
    return { ...required, num_kv_heads, head_dim, native_context }
  })
