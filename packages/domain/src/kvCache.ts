import type { LayerGroup, ModelConfig, ModelShape } from "./repository.ts"

/** The shape of a configuration whose record has none: full-attention layers of one kind. */
export const shapeOf = (config: ModelConfig): ModelShape =>
  config.shape ?? {
    layers: [{ kind: "full", layers: config.num_layers, kv_heads: config.num_kv_heads, head_size: config.head_dim, head_size_v: config.head_dim }],
    intermediate_size: null,
    experts: null,
    vision: null,
    tied_embeddings: false,
    softcapped_logits: false
  }

/**
 * The configuration for engines that cache latents in all layers that have them. Such engines do not expand the
 * latents, so they hold no projection twice.
 */
export const inLatents = (config: ModelConfig): ModelConfig => {
  const shape = shapeOf(config)
  const layers = shape.layers.map((group): LayerGroup => {
    if (group.kind !== "full" || group.latent_size === undefined) return group
    return { kind: "latent", layers: group.layers, latent_size: group.latent_size, index_bytes: 0, absorbed_values: 0 }
  })
  return { ...config, shape: { ...shape, layers } }
}

/** The parameters of a KV cache's size, in addition to the model. */
export interface KvLayout {
  readonly gpuCount: number
  /** Bytes of one value. */
  readonly valueBytes: number
  /** Bytes of a value of the model's own type, which recurrent states use. */
  readonly stateValueBytes: number
  readonly blockTokens: number
  /** Maximum number of tokens whose windows are not yet freed: those of one step, or of all steps under way. */
  readonly stepTokens: number
  /**
   * Whether layers of different kinds share one pool of blocks, in groups with equal numbers of layers. Absent: each
   * layer takes what it needs.
   */
  readonly groupsLayers?: boolean | undefined
  readonly latentAlignment: number
  readonly statesPerSequence: number
  /**
   * If windowed and chunked layers have a pool that scales with the other layers' length: its share of those tokens.
   * Absent: they keep what each sequence needs.
   */
  readonly windowedShare?: number | undefined
  /** If states have a separate pool: its size as a share of the token pool. Absent: both share one pool. */
  readonly statesShare?: number | undefined
  /**
   * If windowed or chunked layers have one pool for all sequences: its capacity in tokens for a window. Takes
   * precedence over `windowedShare`.
   */
  readonly windowedTokens?: ((window: number) => number) | undefined
  /** If states have one pool for all sequences: the number of states in it. Takes precedence over `statesShare`. */
  readonly states?: number | undefined
}

/**
 * Bytes of one token in one layer on one GPU. Heads are replicated if there are fewer than GPUs, and so is MLA's
 * latent. A state does not grow with tokens.
 */
export const layerTokenBytes = (
  group: LayerGroup,
  { gpuCount, latentAlignment, valueBytes }: Pick<KvLayout, "gpuCount" | "latentAlignment" | "valueBytes">
) => {
  if (group.kind === "state") return 0
  if (group.kind === "latent") {
    // Sparse attention stores latents in 8 bits with a 4-byte scale per 128 values, and the 64 position values in 16
    // bits: 656 bytes for 576 values.
    const sparse = group.index_bytes > 0 && valueBytes === 1 ? Math.floor((group.latent_size - 64) / 128) * 4 + 64 : 0
    return Math.ceil((group.latent_size * valueBytes + sparse) / latentAlignment) * latentAlignment + group.index_bytes
  }
  // The index of sparse attention is replicated on each GPU.
  const index = group.kind === "full" ? (group.index_bytes ?? 0) : 0
  return Math.max(1, Math.ceil(group.kv_heads / gpuCount)) * (group.head_size + group.head_size_v) * valueBytes + index
}

/** Bytes of one token on one GPU in all layers that cache it. */
export const kvBytesPerToken = (config: ModelConfig, layout: Pick<KvLayout, "gpuCount" | "latentAlignment" | "valueBytes">): number =>
  shapeOf(config).layers.reduce((sum, group) => sum + group.layers * layerTokenBytes(group, layout), 0)

/** Bytes of one recurrent state in one layer on one GPU, before padding. */
const stateBytes = (group: Extract<LayerGroup, { kind: "state" }>, { gpuCount, stateValueBytes }: KvLayout) =>
  Math.ceil(group.conv_values / gpuCount) * stateValueBytes + Math.ceil(group.state_values / gpuCount) * (group.state_float32 ? 4 : stateValueBytes)

/**
 * Tokens per block. If attention and state layers share a pool, a block is long enough that a page of the attention
 * layers holds one state.
 */
export const blockOf = (config: ModelConfig, layout: KvLayout): number => {
  const { layers } = shapeOf(config)
  const states = layers.flatMap((group) => (group.kind === "state" ? [stateBytes(group, layout)] : []))
  const tokens = layers.filter((group) => group.kind !== "state").map((group) => layerTokenBytes(group, layout))
  if (states.length === 0 || tokens.length === 0) return layout.blockTokens
  return Math.max(layout.blockTokens, Math.ceil(Math.max(...states) / Math.min(...tokens) / layout.blockTokens) * layout.blockTokens)
}

/**
 * Number of tokens that an engine keeps of a window or chunk if it does not page it like the other layers; else null.
 */
const windowedTokensOf = (group: LayerGroup, { windowedShare, windowedTokens }: KvLayout, tokens: number): number | null => {
  if (group.kind !== "sliding" && group.kind !== "chunked") return null
  if (windowedTokens !== undefined) return windowedTokens(group.kind === "sliding" ? group.window : group.chunk)
  return windowedShare === undefined ? null : Math.ceil(tokens * windowedShare)
}

/** Blocks of `block` tokens that one layer keeps for a sequence of `tokens`. */
const layerBlocks = (group: LayerGroup, layout: KvLayout, tokens: number, block: number): number => {
  const blocks = (length: number) => Math.ceil(length / block)
  switch (group.kind) {
    case "full":
    case "latent":
      return blocks(tokens)
    case "sliding":
      return blocks(Math.min(group.window - 1 + layout.stepTokens, tokens)) + 1
    case "chunked":
      return blocks(Math.min(group.chunk + layout.stepTokens, tokens))
    case "state":
      return layout.statesPerSequence
  }
}

/** Bytes of one sequence of `tokens` in one layer. The page size is one block of the layer's group. */
const layerSequenceBytes = (group: LayerGroup, layout: KvLayout, tokens: number, block: number, smallestPage: number): number => {
  const windowed = windowedTokensOf(group, layout, tokens)
  const page = group.kind === "state" ? Math.max(stateBytes(group, layout), smallestPage) : block * layerTokenBytes(group, layout)
  return (windowed === null ? layerBlocks(group, layout, tokens, block) : Math.ceil(windowed / block)) * page
}

/** Layers with the same value share a block table, whatever their sizes. */
const blockTableOf = (group: LayerGroup, layout: KvLayout): string => {
  switch (group.kind) {
    case "full":
    case "latent":
      return "full"
    case "sliding":
      return `sliding ${group.window}`
    case "chunked":
      return `chunked ${group.chunk}`
    case "state":
      return `state ${stateBytes(group, layout)}`
  }
}

/**
 * Number of layers in each of vLLM's groups: the smallest number of layers of a kind, or the largest if that is less
 * than 1.5 times as many (`_get_kv_cache_groups_uniform_page_size`). The last group of a kind is padded to it.
 */
const layersPerGroup = (counts: ReadonlyArray<number>): number => {
  const [least, most] = [Math.min(...counts), Math.max(...counts)]
  return most < least * 1.5 ? most : least
}

/** The same layers without a window. */
const withEveryToken = (group: LayerGroup): LayerGroup => {
  if (group.kind !== "sliding" && group.kind !== "chunked") return group
  return { kind: "full", layers: group.layers, kv_heads: group.kv_heads, head_size: group.head_size, head_size_v: group.head_size_v }
}

/**
 * Bytes of one sequence of `tokens` if layers of different kinds share one pool, or null if all have the same block
 * table and none is padded. All groups take blocks of equal size from the pool: a layer with a smaller page has longer
 * blocks if its page divides the largest, otherwise it is padded (`unify_kv_cache_spec_page_size`). Latents cannot be
 * padded: then windowed layers keep every token (`_try_get_full_allocation_fallback_groups`). From vLLM 0.33.0,
 * `vllm/v1/core/kv_cache_planning.py`; a sequence is `_max_memory_usage_bytes_from_groups`.
 */
const groupedSequenceBytes = (config: ModelConfig, layout: KvLayout, tokens: number): number | null => {
  const { layers } = shapeOf(config)
  if (layout.groupsLayers !== true || new Set(layers.map((group) => blockTableOf(group, layout))).size < 2) return null
  const block = blockOf(config, layout)
  const pageOf = (group: LayerGroup) => (group.kind === "state" ? stateBytes(group, layout) : block * layerTokenBytes(group, layout))
  const page = Math.max(...layers.map(pageOf))
  if (layers.some((group) => group.kind === "latent" && page % pageOf(group) !== 0)) {
    const complete = { ...config, shape: { ...shapeOf(config), layers: layers.map(withEveryToken) } }
    // A window has one block more than its tokens need, so short sequences take more with it.
    return Math.max(...[complete, config].map((each) => sequenceBytes(each, { ...layout, groupsLayers: false }, tokens)))
  }
  const kinds = new Map<string, LayerGroup>()
  for (const group of layers) {
    const key = JSON.stringify({ ...group, layers: 0 })
    kinds.set(key, { ...group, layers: group.layers + (kinds.get(key)?.layers ?? 0) })
  }
  const groups = [...kinds.values()]
  const perGroup = layersPerGroup(groups.map((group) => group.layers))
  const blocks = groups.reduce((sum, group) => {
    const ownPage = pageOf(group)
    const ownBlock = ownPage > 0 && page % ownPage === 0 ? (block * page) / ownPage : block
    return sum + Math.ceil(group.layers / perGroup) * layerBlocks(group, layout, tokens, ownBlock)
  }, 0)
  return blocks * perGroup * page
}

/**
 * Bytes of one sequence of `tokens` on one GPU: vLLM's `max_memory_usage_bytes` of each layer's `KVCacheSpec`
 * (`vllm/v1/kv_cache_interface.py`), summed over the layers or their groups. A state takes a whole page of the
 * attention layers.
 */
export const sequenceBytes = (config: ModelConfig, layout: KvLayout, tokens: number): number => {
  const grouped = groupedSequenceBytes(config, layout, tokens)
  if (grouped !== null) return grouped
  const block = blockOf(config, layout)
  const { layers } = shapeOf(config)
  const pages = layers.filter((group) => group.kind !== "state").map((group) => block * layerTokenBytes(group, layout))
  const smallestPage = pages.length === 0 ? 0 : Math.min(...pages)
  let tokenBytes = 0
  let states = 0
  for (const group of layers) {
    if (group.kind === "state" && layout.states !== undefined) {
      tokenBytes += group.layers * layout.states * stateBytes(group, layout)
      continue
    }
    const bytes = group.layers * layerSequenceBytes(group, layout, tokens, block, smallestPage)
    if (group.kind === "state") states += bytes
    else tokenBytes += bytes
  }
  const { statesShare } = layout
  if (statesShare === undefined || tokenBytes === 0 || states === 0) return tokenBytes + states
  // The sizes of the two pools are proportional, so the fuller pool decides.
  return Math.ceil(Math.max(tokenBytes, states / statesShare) * (1 + statesShare))
}

/**
 * Bytes on one GPU that all sequences share, for any number of them: the part of `sequenceBytes` that a second sequence
 * does not add.
 */
export const heldBytes = (config: ModelConfig, layout: KvLayout): number => {
  const { layers } = shapeOf(config)
  const held = layers.filter(
    ({ kind }) => (kind === "state" && layout.states !== undefined) || ((kind === "sliding" || kind === "chunked") && layout.windowedTokens !== undefined)
  )
  return held.length === 0 ? 0 : sequenceBytes({ ...config, shape: { ...shapeOf(config), layers: held } }, layout, 0)
}

/**
 * The longest sequence, up to `limit`, whose cache takes at most `bytes`. Below the limit it is a multiple of the block
 * size; 0 if no block fits.
 */
export const longestSequence = (config: ModelConfig, layout: KvLayout, bytes: number, limit: number): number => {
  if (bytes <= 0 || limit < 1) return 0
  if (sequenceBytes(config, layout, limit) <= bytes) return limit
  const block = blockOf(config, layout)
  let fitting = 0
  let over = Math.ceil(limit / block)
  while (over - fitting > 1) {
    const middle = Math.floor((fitting + over) / 2)
    if (sequenceBytes(config, layout, middle * block) <= bytes) fitting = middle
    else over = middle
  }
  return fitting * block
}
