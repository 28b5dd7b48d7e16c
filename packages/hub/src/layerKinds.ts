import { Result } from "effect"
import { type ConfigReader, limits } from "./ConfigReader.ts"
import { Unreadable, UnsupportedArchitecture } from "./failures.ts"

/** What a layer caches of a sequence. `none`: nothing. `both`: keys and values and a state. */
export type LayerKind = "full" | "sliding" | "chunked" | "state" | "both" | "none"

const kindsByWord: ReadonlyMap<string, LayerKind> = new Map([
  ["full_attention", "full"],
  ["attention", "full"],
  ["global", "full"],
  ["global_attention", "full"],
  ["indexed_attention", "full"],
  ["deepseek_sparse_attention", "full"],
  ["qwen_sparse_attention", "full"],
  ["sliding_attention", "sliding"],
  ["sliding_window_attention", "sliding"],
  ["sliding_window", "sliding"],
  ["local", "sliding"],
  ["local_attention", "sliding"],
  ["chunked_attention", "chunked"],
  ["linear_attention", "state"],
  ["mamba", "state"],
  ["mamba2", "state"],
  ["recurrent", "state"],
  ["conv", "state"],
  ["hybrid", "both"],
  ["mlp", "none"],
  ["moe", "none"]
])

/** The letters of `hybrid_override_pattern`. */
const letters: ReadonlyMap<string, LayerKind> = new Map([
  ["M", "state"],
  ["*", "full"],
  ["-", "none"],
  ["E", "none"]
])

type KindsResult = Result.Result<ReadonlyArray<LayerKind> | null, Unreadable | UnsupportedArchitecture>

/** Formats a word of the repository for a message, without line breaks or control of text direction. */
const printable = (word: string) => JSON.stringify(word.slice(0, 64).replace(/[^ -~]/g, "?"))

const unknownKind = (key: string, word: string, known: Iterable<string>) =>
  Result.fail(
    new UnsupportedArchitecture({
      reason: `config.json has layers of the kind ${printable(word)} in ${key}. Seatrial knows only these kinds: ${[...known].join(", ")}.`
    })
  )

const tooFew = (key: string, layers: number) => Result.fail(new Unreadable({ reason: `config.json has ${layers} layers, but lists fewer in ${key}.` }))

const fromWords = (key: string, words: ReadonlyArray<string>, layers: number): KindsResult => {
  if (words.length < layers) return tooFew(key, layers)
  const kinds: Array<LayerKind> = []
  for (const word of words.slice(0, layers)) {
    const kind = kindsByWord.get(word)
    if (kind === undefined) return unknownKind(key, word, kindsByWord.keys())
    kinds.push(kind)
  }
  return Result.succeed(kinds)
}

const every = (layers: number, kindOf: (index: number) => LayerKind): ReadonlyArray<LayerKind> => Array.from({ length: layers }, (_, index) => kindOf(index))

/** The kinds by one member of the configuration; null if it is absent. */
type KindsSource = (reader: ConfigReader, layers: number) => KindsResult

const byLayerTypes: KindsSource = (reader, layers) =>
  Result.gen(function* () {
    for (const key of ["layer_types", "layers_block_type"]) {
      const words = yield* reader.words(key)
      if (words !== null && words.length > 0) return yield* fromWords(key, words, layers)
    }
    return null
  })

const byRepeatedBlocks: KindsSource = (reader, layers) =>
  Result.gen(function* () {
    const repeated = (yield* reader.words("block_types")) ?? (yield* reader.words("_block_types"))
    if (repeated === null || repeated.length === 0) return null
    const words = Array.from({ length: layers }, (_, index) => repeated[index % repeated.length] ?? "")
    return yield* fromWords("block_types", words, layers)
  })

const byLetters: KindsSource = (reader, layers) =>
  Result.gen(function* () {
    const pattern = reader.value("hybrid_override_pattern")
    if (typeof pattern !== "string") return null
    if (pattern.length < layers) return yield* tooFew("hybrid_override_pattern", layers)
    const kinds: Array<LayerKind> = []
    for (const letter of pattern.slice(0, layers)) {
      const kind = letters.get(letter)
      if (kind === undefined) return yield* unknownKind("hybrid_override_pattern", letter, letters.keys())
      kinds.push(kind)
    }
    return kinds
  })

/** A list of ones for layers of one kind, and zeros for layers of the other. */
const byFlags =
  (key: string, one: LayerKind, zero: LayerKind): KindsSource =>
  (reader, layers) =>
    Result.gen(function* () {
      const flags = yield* reader.counts(1, key)
      if (flags === null) return null
      return flags.length < layers ? yield* tooFew(key, layers) : flags.slice(0, layers).map((flag) => (flag === 1 ? one : zero))
    })

const byIndices: KindsSource = (reader, layers) =>
  Result.map(reader.counts(limits.layers, "attn_layer_indices", "full_attn_idxs"), (indices) =>
    indices === null ? null : every(layers, (index) => (indices.includes(index) ? "full" : "state"))
  )

const byNestedIndices: KindsSource = (reader, layers) =>
  Result.gen(function* () {
    const delta = reader.inner("linear_attn_config")
    if (delta === null) return null
    const full = (yield* delta.counts(limits.layers, "full_attn_layers")) ?? []
    return every(layers, (index) => (full.includes(index + 1) ? "full" : "state"))
  })

/** In the order in which they take precedence. */
const listedSources: ReadonlyArray<KindsSource> = [
  byLayerTypes,
  byRepeatedBlocks,
  byLetters,
  byFlags("attn_type_list", "full", "state"),
  byFlags("hybrid_layer_pattern", "sliding", "full"),
  byIndices,
  byNestedIndices
]

/** Kinds that are listed layer by layer. */
const listed: KindsSource = (reader, layers) =>
  Result.gen(function* () {
    for (const source of listedSources) {
      const kinds = yield* source(reader, layers)
      if (kinds !== null) return kinds
    }
    return null
  })

/** Kinds that alternate at an interval. */
const periodic = (reader: ConfigReader, layers: number): KindsResult =>
  Result.gen(function* () {
    const period = yield* reader.count(limits.layers, "attn_layer_period")
    if (period !== null) {
      const offset = (yield* reader.countOrNone(limits.layers, "attn_layer_offset")) ?? 0
      return every(layers, (index) => (index % period === offset ? "full" : "state"))
    }
    const delta = reader.has("linear_num_value_heads")
    // Families with gated delta networks omit the interval if it is the 4 of their classes.
    const interval = (yield* reader.count(limits.layers, "full_attention_interval", ...(delta ? [] : ["layer_group_size"]))) ?? (delta ? 4 : null)
    if (interval !== null) return every(layers, (index) => ((index + 1) % interval === 0 ? "full" : "state"))
    return null
  })

/**
 * Families with a period of layers in which all but the last have a window, by their classes (`configuration_*.py` of
 * Transformers).
 */
const lastOfTurn: ReadonlyMap<string, number> = new Map([
  ["gemma2", 2],
  ["gemma3", 6],
  ["gemma3_text", 6],
  ["gemma3n_text", 5],
  ["gpt_oss", 2],
  ["vaultgemma", 2],
  ["afmoe", 4],
  ["cohere2", 4],
  ["exaone4", 4],
  ["olmo3", 4]
])
/** The same, with all but the first. */
const firstOfTurn: ReadonlyMap<string, number> = new Map([
  ["cwm", 4],
  ["granite_swa", 4],
  ["granitemoe_swa", 4]
])
/**
 * Families that mix windowed and full layers by special rules. If they do not list the layers, no window is
 * assumed.
 */
const mixed = /^(beam|cohere2_moe|cohere_compass|exaone_moe|flint|kolibri|laguna|mellum|mimo_v2|muse_)/
/** Families with a separate switch for the window, which is off by default. */
const switched = /^(qwen|smollm3)/

/** Llama 4 and models like it: chunks in layers with positions. Null for other families. */
const chunked = (reader: ConfigReader, modelType: string, layers: number): KindsResult =>
  Result.gen(function* () {
    if (!modelType.startsWith("llama4") && !(reader.has("no_rope_layers") && reader.has("attention_chunk_size"))) return null
    const rope = yield* reader.counts(1, "no_rope_layers")
    if (rope !== null && rope.length >= layers) return rope.slice(0, layers).map((turns) => (turns === 1 ? "chunked" : "full"))
    const interval = (yield* reader.count(limits.layers, "no_rope_layer_interval")) ?? 4
    return every(layers, (index) => ((index + 1) % interval === 0 ? "full" : "chunked"))
  })

/** Whether some layers have a window, by the configuration. */
const hasWindow = (reader: ConfigReader, modelType: string): Result.Result<boolean, Unreadable> =>
  Result.gen(function* () {
    const isUsed = reader.value("use_sliding_window") ?? !switched.test(modelType)
    if (isUsed === false) return false
    return (yield* reader.countOrNone(limits.tokens, "sliding_window", "attention_window_size")) !== null && !mixed.test(modelType)
  })

/** The layers with a window, by a pattern of the configuration or by the family. */
const sliding = (reader: ConfigReader, modelType: string, layers: number): Result.Result<ReadonlyArray<LayerKind>, Unreadable> =>
  Result.gen(function* () {
    const pattern = reader.value("sliding_window_pattern")
    if (typeof pattern === "string" && /^[LG]{1,64}$/.test(pattern))
      return every(layers, (index) => (pattern[index % pattern.length] === "G" ? "full" : "sliding"))
    const stated = yield* reader.countOrNone(limits.layers, "sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    const turn = stated ?? lastOfTurn.get(modelType)
    if (turn !== undefined) return every(layers, (index) => ((index + 1) % turn === 0 ? "full" : "sliding"))
    const first = firstOfTurn.get(modelType)
    if (first !== undefined) return every(layers, (index) => (index % first === 0 ? "full" : "sliding"))
    // Qwen2's rule: layers from this one on have the window.
    const from = modelType.startsWith("qwen") ? yield* reader.countOrNone(limits.layers, "max_window_layers") : null
    return every(layers, (index) => (from !== null && index < from ? "full" : "sliding"))
  })

/** Windows and chunks by the families' own rules if no layers are listed. */
const windowed = (reader: ConfigReader, modelType: string, layers: number): Result.Result<ReadonlyArray<LayerKind>, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    const kinds = yield* chunked(reader, modelType, layers)
    if (kinds !== null) return kinds
    return (yield* hasWindow(reader, modelType)) ? yield* sliding(reader, modelType, layers) : every(layers, () => "full")
  })

/** Types whose layers all keep a state and no cache per token. */
export const recurrentTypes: ReadonlySet<string> = new Set(["mamba", "mamba2", "falcon_mamba"])
/** Members of types that run each of their layers several times and cache keys and values each time. */
const loops = ["loop_num", "n_recurrent_loops", "H_cycles"]

/**
 * Families with further caches in addition to keys and values, and the members that show it: rings of summaries (Step
 * 5), compressed index keys and n-gram embedding states (Qwen4-Exp), latents as wide as those of the windows
 * (dots3-note), short convolution states in every layer (Inkling). Engines store these in separate groups of blocks.
 */
const furtherCaches: ReadonlyArray<readonly [family: RegExp, keys: ReadonlyArray<string> | "always"]> = [
  [/^step5/, ["sparse_config"]],
  [/^qwen4_exp/, ["indexer_n_heads", "ple_layer_ids"]],
  [/^dots3_note/, ["swa_kv_lora_rank"]],
  [/^inkling/, "always"]
]

const refusedCache = (reader: ConfigReader, modelType: string): UnsupportedArchitecture | null => {
  const entry = furtherCaches.find(([family]) => family.test(modelType))
  if (entry === undefined) return null
  const [, keys] = entry
  const isSet = (value: unknown) => (Array.isArray(value) ? value.length > 0 : value !== undefined)
  const key = keys === "always" ? null : keys.find((key) => isSet(reader.value(key)))
  if (key === undefined) return null
  const subject = key === null ? `config.json is of the type ${modelType}` : `config.json is of the type ${modelType} and has ${key}`
  return new UnsupportedArchitecture({
    reason: `${subject}: its layers have caches in addition to keys and values, and Seatrial cannot compute their memory.`
  })
}

/** The first member that shows caches of unknown sizes, as a refusal; null if there is none. */
const refusedMember = (reader: ConfigReader): UnsupportedArchitecture | null => {
  const isSet = (value: unknown) => (Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false)
  const unknown = ["cross_attention_layers", "compress_ratios", "compress_rates", "is_encoder_decoder"].find((key) => isSet(reader.value(key)))
  if (unknown !== undefined) return new UnsupportedArchitecture({ reason: `config.json has ${unknown}: Seatrial cannot compute the memory of its caches.` })
  const loop = loops.find((key) => typeof reader.value(key) === "number" && reader.value(key) !== 1)
  if (loop === undefined) return null
  return new UnsupportedArchitecture({
    reason: `config.json has ${loop}: its layers run several times, and Seatrial cannot compute the memory of their caches.`
  })
}

/** Families whose layers are all of one kind, even if the configuration states otherwise. */
const uniformKinds = (modelType: string, layers: number): ReadonlyArray<LayerKind> | null => {
  if (recurrentTypes.has(modelType)) return every(layers, () => "state")
  if (modelType === "falcon_h1") return every(layers, () => "both")
  // Two attentions per layer.
  return modelType.startsWith("longcat_flash") ? every(2 * layers, () => "full") : null
}

/** What each layer of a model caches, by its configuration or by its family. */
export const layerKinds = (
  reader: ConfigReader,
  modelType: string,
  layers: number
): Result.Result<ReadonlyArray<LayerKind>, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    const refused = refusedMember(reader) ?? refusedCache(reader, modelType)
    if (refused !== null) return yield* Result.fail(refused)
    const uniform = uniformKinds(modelType, layers)
    if (uniform !== null) return uniform
    const kinds = (yield* listed(reader, layers)) ?? (yield* periodic(reader, layers)) ?? (yield* windowed(reader, modelType, layers))
    // Layers that share the keys and values of an earlier layer cache nothing.
    const shared = (yield* reader.countOrNone(limits.layers, "num_kv_shared_layers")) ?? 0
    return kinds.map((kind, index) => (index >= layers - shared ? "none" : kind))
  })
