import type { LayerGroup, ModelShape } from "@seatrial/domain"
import { Predicate, Result } from "effect"
import { type ConfigReader, limits } from "./ConfigReader.ts"
import { Unreadable, UnsupportedArchitecture } from "./failures.ts"
import { tiedFamilies } from "./familyDefaults.ts"
import { type LayerKind, layerKinds } from "./layerKinds.ts"
import { recurrentState } from "./recurrentState.ts"

/** Values that were read before. */
export interface Heads {
  readonly model_type: string
  readonly num_layers: number
  readonly hidden_size: number
  readonly num_attention_heads: number
  readonly num_kv_heads: number
  readonly head_dim: number
}

type Read<A> = Result.Result<A, Unreadable | UnsupportedArchitecture>

/**
 * Families with MLA's two sizes for which vLLM still caches a key and a value per head, as wide as a key with its
 * positions (`MiniCPM3Attention`, which pads the values), while SGLang caches latents (`MiniCPM3AttentionMLA`).
 */
const withoutLatents: ReadonlySet<string> = new Set(["minicpm3"])

/** Whether each token is cached as one latent. */
const isLatent = (reader: ConfigReader, modelType: string) => reader.has("kv_lora_rank") && reader.has("qk_rope_head_dim") && !withoutLatents.has(modelType)

const latentLayer = (reader: ConfigReader, heads: Heads): Read<Extract<LayerGroup, { kind: "latent" }>> =>
  Result.gen(function* () {
    const rank = yield* reader.count(limits.width, "kv_lora_rank")
    // None if positions are not encoded.
    const rope = (yield* reader.countOrNone(limits.width, "qk_rope_head_dim")) ?? 0
    if (rank === null) return yield* Result.fail(new UnsupportedArchitecture({ reason: "config.json does not state the size of its attention's latent." }))
    const nope = (yield* reader.countOrNone(limits.width, "qk_nope_head_dim")) ?? heads.head_dim
    const value = (yield* reader.countOrNone(limits.width, "v_head_dim")) ?? heads.head_dim
    // The index of sparse attention caches an 8-bit key, with a scale of 4 bytes per 128 values.
    const index = yield* reader.countOrNone(limits.width, "index_head_dim")
    return {
      kind: "latent",
      layers: 1,
      latent_size: rank + rope,
      index_bytes: index === null ? 0 : index + 4 * Math.ceil(index / 128),
      absorbed_values: rank * heads.num_attention_heads * (nope + value)
    }
  })

/** The key-value heads of each layer, if layers differ; 0 for a layer without attention. */
const headsByLayer = (reader: ConfigReader, heads: Heads): Read<ReadonlyArray<number> | null> =>
  Result.gen(function* () {
    const headCounts = yield* reader.counts(limits.heads, "num_key_value_heads_per_layer", "num_key_value_heads", "num_kv_heads")
    if (headCounts !== null) return headCounts
    const blocks = reader.value("block_configs")
    if (!Array.isArray(blocks) || blocks.length > limits.layers) return null
    return blocks.map((block: unknown) => {
      const attention = Predicate.isObject(block) && Predicate.isObject(block.attention) ? block.attention : {}
      const group = attention.n_heads_in_group
      if (attention.no_op === true || attention.replace_with_linear === true) return 0
      return typeof group === "number" && group >= 1 ? Math.max(1, Math.floor(heads.num_attention_heads / group)) : heads.num_kv_heads
    })
  })

type KeptKind = Exclude<LayerKind, "both" | "none">

const stateLayer = (reader: ConfigReader, { head_dim, hidden_size, model_type, num_attention_heads: heads }: Heads): Read<LayerGroup> =>
  Result.map(recurrentState(reader, model_type, { hidden_size, heads, head_dim }), (state) => ({ kind: "state", layers: 1, ...state }))

/** A layer of a family that caches keys and values although it has the sizes of a latent. */
const expandedLayer = (reader: ConfigReader, heads: Heads, kvHeads: number): Read<LayerGroup> =>
  Result.gen(function* () {
    const nope = (yield* reader.countOrNone(limits.width, "qk_nope_head_dim")) ?? heads.head_dim
    const head_size = nope + ((yield* reader.countOrNone(limits.width, "qk_rope_head_dim")) ?? 0)
    const rank = yield* reader.countOrNone(limits.width, "kv_lora_rank")
    const latent = rank === null ? {} : { latent_size: rank + head_size - nope }
    return { kind: "full", layers: 1, kv_heads: kvHeads, head_size, head_size_v: head_size, ...latent }
  })

/** A layer that caches all tokens. */
const fullLayer = (reader: ConfigReader, heads: Heads, kvHeads: number): Read<LayerGroup> =>
  Result.gen(function* () {
    if (isLatent(reader, heads.model_type)) return yield* latentLayer(reader, heads)
    if (withoutLatents.has(heads.model_type)) return yield* expandedLayer(reader, heads, kvHeads)
    const head_size = (yield* reader.countOrNone(limits.width, "global_head_dim")) ?? heads.head_dim
    const head_size_v = reader.has("global_head_dim") ? head_size : ((yield* reader.countOrNone(limits.width, "v_head_dim")) ?? head_size)
    const kv_heads = (yield* reader.countOrNone(limits.heads, "num_global_key_value_heads")) ?? kvHeads
    return { kind: "full", layers: 1, kv_heads, head_size, head_size_v }
  })

/** A layer that caches a window or a chunk of the tokens. */
const partialLayer = (reader: ConfigReader, heads: Heads, kvHeads: number, chunk: number | null): Read<LayerGroup> =>
  Result.gen(function* () {
    const head_size = (yield* reader.countOrNone(limits.width, "swa_head_dim")) ?? heads.head_dim
    const head_size_v = (yield* reader.countOrNone(limits.width, "swa_v_head_dim")) ?? (reader.has("swa_head_dim") ? head_size : heads.head_dim)
    const kv_heads = (yield* reader.countOrNone(limits.heads, "swa_num_key_value_heads")) ?? kvHeads
    const attention = { layers: 1, kv_heads, head_size, head_size_v }
    if (chunk !== null) return { kind: "chunked", ...attention, chunk }
    const window = yield* reader.countOrNone(limits.tokens, "sliding_window", "sliding_window_size", "attention_window_size")
    if (window === null)
      return yield* Result.fail(new UnsupportedArchitecture({ reason: "config.json has layers with a sliding window and does not state how long it is." }))
    return { kind: "sliding", ...attention, window }
  })

/** One layer of a kind. */
const layerOf = (reader: ConfigReader, heads: Heads, kind: KeptKind, kvHeads: number): Read<LayerGroup> =>
  Result.gen(function* () {
    if (kind === "state") return yield* stateLayer(reader, heads)
    const chunk = kind === "chunked" ? yield* reader.countOrNone(limits.tokens, "attention_chunk_size") : null
    // If a configuration sets its class's chunk to null, engines give such layers all tokens.
    const isFull = kind === "full" || (kind === "chunked" && chunk === null)
    return isFull ? yield* fullLayer(reader, heads, kvHeads) : yield* partialLayer(reader, heads, kvHeads, chunk)
  })

/**
 * Bytes per token of MiniMax-M3's index by layer: a 16-bit key for any cache type, in layers with sparse attention, and
 * a value unless it is switched off (vLLM's `MiniMaxM3IndexerCache`, SGLang's `MiniMaxSparseKVPool`). Null if there is
 * no index.
 */
const indexByLayer = (reader: ConfigReader, modelType: string): Read<((layer: number) => number) | null> =>
  Result.gen(function* () {
    if (!modelType.startsWith("minimax_m3")) return null
    const sparse = reader.inner("sparse_attention_config")
    const width = sparse === null ? null : yield* sparse.count(limits.width, "sparse_index_dim")
    const layers = sparse === null ? null : yield* sparse.counts(limits.layers, "sparse_attention_freq")
    if (sparse === null || width === null || layers === null)
      return yield* Result.fail(
        new UnsupportedArchitecture({
          reason:
            "config.json does not state sparse_index_dim and sparse_attention_freq in sparse_attention_config: Seatrial cannot compute the memory of its index."
        })
      )
    const withoutValue = (yield* sparse.counts(limits.layers, "sparse_disable_index_value")) ?? []
    return (layer) => ((layers[layer] ?? 0) === 0 ? 0 : 2 * width * ((withoutValue[layer] ?? 0) === 0 ? 2 : 1))
  })

/** Beyond any real model, whose layers have few kinds and sizes. Each group is evaluated for each host class. */
const maxGroups = 200

/** What a layer of a kind keeps. */
const keptKinds = (kind: LayerKind): ReadonlyArray<KeptKind> => {
  if (kind === "both") return ["full", "state"]
  return kind === "none" ? [] : [kind]
}

/** Counts layers of the same kind and sizes as one group. */
const addLayer = (groups: Map<string, LayerGroup>, layer: LayerGroup): Result.Result<void, Unreadable> => {
  const key = JSON.stringify(layer)
  const existing = groups.get(key)
  if (existing === undefined && groups.size === maxGroups)
    return Result.fail(new Unreadable({ reason: `config.json describes layers of more than ${maxGroups} kinds and sizes.` }))
  groups.set(key, existing === undefined ? layer : { ...existing, layers: existing.layers + 1 })
  return Result.succeed(undefined)
}

const layerGroups = (reader: ConfigReader, heads: Heads): Read<ReadonlyArray<LayerGroup>> =>
  Result.gen(function* () {
    const kinds = yield* layerKinds(reader, heads.model_type, heads.num_layers)
    const byLayer = yield* headsByLayer(reader, heads)
    const indexOf = yield* indexByLayer(reader, heads.model_type)
    const groups = new Map<string, LayerGroup>()
    const known = new Map<string, LayerGroup>()
    for (const [index, kind] of kinds.entries()) {
      const kvHeads = byLayer?.[index] ?? heads.num_kv_heads
      for (const part of keptKinds(kind)) {
        if (kvHeads === 0 && part !== "state") continue
        const index_bytes = part === "full" ? (indexOf?.(index) ?? 0) : 0
        const key = `${part} ${kvHeads} ${index_bytes}`
        const plain = known.get(key) ?? (yield* layerOf(reader, heads, part, kvHeads))
        const layer = plain.kind === "full" && index_bytes > 0 ? { ...plain, index_bytes } : plain
        known.set(key, layer)
        yield* addLayer(groups, layer)
      }
    }
    return [...groups.values()]
  })

/** Number of patches of an image without a size limit: the maximum of families that read images at their own size. */
const largestImage = 65_536

/** Families whose towers merge two by two patches into a token if their configuration does not say. */
const mergingFamilies = /^(?:mistral3|qwen\d)/

const towerOf = (config: ConfigReader): ConfigReader | null =>
  config.inner("vision_config") ??
  config.inner("vision_tower_config") ??
  config.inner("vit_config") ??
  config.inner("thinker_config")?.inner("vision_config") ??
  null

const patchesOf = (tower: ConfigReader): number => {
  const image = tower.side("image_size")
  const patch = tower.side("patch_size") ?? tower.side("spatial_patch_size")
  return image === null || patch === null ? largestImage : Math.min(largestImage, Math.max(1, Math.ceil(image / patch) ** 2))
}

/** Number of tokens of an image: as stated, or by the patches per side that are merged into one. */
const imageTokens = (config: ConfigReader, tower: ConfigReader, patches: number): number => {
  const family = String(config.value("model_type"))
  const stated = config.size(limits.tokens, "mm_tokens_per_image") ?? (family === "gemma3" ? 256 : null)
  if (stated !== null) return stated
  const merged = tower.size(limits.width, "spatial_merge_size") ?? config.size(limits.width, "spatial_merge_size") ?? (mergingFamilies.test(family) ? 2 : 1)
  return Math.max(1, Math.ceil(patches / merged ** 2))
}

/** The vision tower. Omitted values default to the usual tower (ViT-L/14). */
const visionOf = (config: ConfigReader): ModelShape["vision"] => {
  const tower = towerOf(config)
  if (tower === null) return null
  // If a tower has a separate member for its own width, `hidden_size` is the width of its output.
  const hidden_size = tower.size(limits.width, "embed_dim", "vt_hidden_size", "hidden_size", "width") ?? 1_024
  const patches = patchesOf(tower)
  return {
    layers: tower.size(limits.layers, "num_hidden_layers", "depth", "layers", "num_layers", "vt_num_hidden_layers") ?? 24,
    hidden_size,
    intermediate_size: tower.size(limits.width, "intermediate_size", "vt_intermediate_size") ?? 4 * hidden_size,
    patches,
    image_tokens: imageTokens(config, tower, patches)
  }
}

/**
 * The parameters of a model's memory use, by kind of layer. `outer` is the complete configuration. Unknown kinds of
 * layers are refused by name.
 */
export const parseShape = (reader: ConfigReader, outer: ConfigReader, heads: Heads): Read<ModelShape> =>
  Result.gen(function* () {
    const layers = yield* layerGroups(reader, heads)
    const dense = yield* reader.largestOrNone(limits.width, "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "inner_hidden_size")
    const count = yield* reader.largestOrNone(limits.heads, "num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts")
    const active = yield* reader.largestOrNone(
      limits.heads,
      "num_experts_per_tok",
      "num_experts_per_token",
      "top_k_experts",
      "moe_topk",
      "moe_top_k",
      "moe_k",
      "top_k"
    )
    const inner = yield* reader.largestOrNone(limits.width, "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size", "ffn_hidden_size")
    const tied = reader.value("tie_word_embeddings") ?? outer.value("tie_word_embeddings")
    return {
      layers,
      intermediate_size: dense,
      experts: count === null || count < 2 ? null : { count, active: Math.min(count, active ?? 1), intermediate_size: inner ?? 4 * heads.hidden_size },
      vision: visionOf(outer),
      tied_embeddings: typeof tied === "boolean" ? tied : tiedFamilies.has(heads.model_type),
      softcapped_logits: reader.has("final_logit_softcapping")
    }
  })
