import type { LayerGroup, ModelConfig, ModelShape } from "./repository.ts"

/** The shape of a configuration whose record says none: layers of one kind, each of which keeps every token. */
export const shapeOf = (config: ModelConfig): ModelShape =>
  config.shape ?? {
    layers: [{ kind: "full", layers: config.num_layers, kv_heads: config.num_kv_heads, head_size: config.head_dim, head_size_v: config.head_dim }],
    intermediate_size: null,
    experts: null,
    vision: null,
    tied_embeddings: false,
    softcapped_logits: false
  }

/** A configuration as engines read it that keep latents wherever layers can: of these they bring nothing back, so that they hold no projection twice. */
export const inLatents = (config: ModelConfig): ModelConfig => {
  const shape = shapeOf(config)
  const layers = shape.layers.map((group): LayerGroup => {
    if (group.kind !== "full" || group.latent_size === undefined) return group
    return { kind: "latent", layers: group.layers, latent_size: group.latent_size, index_bytes: 0, absorbed_values: 0 }
  })
  return { ...config, shape: { ...shape, layers } }
}

/** What the size of a KV cache depends on beside the model. */
export interface KvLayout {
  readonly gpuCount: number
  /** Bytes of one value. */
  readonly valueBytes: number
  /** Bytes of a value of the model's own type, in which recurrent states are kept. */
  readonly stateValueBytes: number
  readonly blockTokens: number
  /** Most tokens of one step. */
  readonly stepTokens: number
  readonly latentAlignment: number
  readonly statesPerSequence: number
  /** Where layers with a window or a chunk have a pool that follows the others' length: its share of those tokens. Absent: they keep what they need of a sequence. */
  readonly windowedShare?: number | undefined
  /** Where states have a pool of their own: its size as a share of that of the layers that keep tokens. Absent: both share one. */
  readonly statesShare?: number | undefined
  /** Where layers with a window or a chunk of so many tokens have a pool for all sequences together: its tokens. It comes before `windowedShare`. */
  readonly windowedTokens?: ((window: number) => number) | undefined
  /** Where states have a pool for all sequences together: how many it holds. It comes before `statesShare`. */
  readonly states?: number | undefined
}

/** Bytes of one token in one layer on one GPU: heads fewer than the GPUs are replicated, and so is MLA's latent; a state grows by nothing. */
export const layerTokenBytes = (
  group: LayerGroup,
  { gpuCount, latentAlignment, valueBytes }: Pick<KvLayout, "gpuCount" | "latentAlignment" | "valueBytes">
) => {
  if (group.kind === "state") return 0
  if (group.kind === "latent") {
    // Sparse attention reads latents of 8 bits with a scale of 4 bytes for each 128 values, and the positions' 64 values in 16 bits: 656 bytes for 576 values.
    const sparse = group.index_bytes > 0 && valueBytes === 1 ? Math.floor((group.latent_size - 64) / 128) * 4 + 64 : 0
    return Math.ceil((group.latent_size * valueBytes + sparse) / latentAlignment) * latentAlignment + group.index_bytes
  }
  // Each GPU keeps a sparse attention's index whole.
  const index = group.kind === "full" ? (group.index_bytes ?? 0) : 0
  return Math.max(1, Math.ceil(group.kv_heads / gpuCount)) * (group.head_size + group.head_size_v) * valueBytes + index
}

/** Bytes that one token takes on one GPU in all layers that keep it. */
export const kvBytesPerToken = (config: ModelConfig, layout: Pick<KvLayout, "gpuCount" | "latentAlignment" | "valueBytes">): number =>
  shapeOf(config).layers.reduce((sum, group) => sum + group.layers * layerTokenBytes(group, layout), 0)

/** Bytes of one recurrent state on one GPU in one layer, before padding. */
const stateBytes = (group: Extract<LayerGroup, { kind: "state" }>, { gpuCount, stateValueBytes }: KvLayout) =>
  Math.ceil(group.conv_values / gpuCount) * stateValueBytes + Math.ceil(group.state_values / gpuCount) * (group.state_float32 ? 4 : stateValueBytes)

/** Tokens of one block: where layers with states share the pool, a block is so long that a page of the attention layers holds one state. */
export const blockOf = (config: ModelConfig, layout: KvLayout): number => {
  const { layers } = shapeOf(config)
  const states = layers.flatMap((group) => (group.kind === "state" ? [stateBytes(group, layout)] : []))
  const tokens = layers.filter((group) => group.kind !== "state").map((group) => layerTokenBytes(group, layout))
  if (states.length === 0 || tokens.length === 0) return layout.blockTokens
  return Math.max(layout.blockTokens, Math.ceil(Math.max(...states) / Math.min(...tokens) / layout.blockTokens) * layout.blockTokens)
}

/** Bytes that one sequence of `tokens` needs in one layer: its group's page is one block's. */
const layerSequenceBytes = (group: LayerGroup, layout: KvLayout, tokens: number, block: number, smallestPage: number): number => {
  const blocks = (length: number) => Math.ceil(length / block)
  const page = block * layerTokenBytes(group, layout)
  const { windowedShare, windowedTokens } = layout
  if (windowedTokens !== undefined && group.kind === "sliding") return blocks(windowedTokens(group.window)) * page
  if (windowedTokens !== undefined && group.kind === "chunked") return blocks(windowedTokens(group.chunk)) * page
  if (windowedShare !== undefined && (group.kind === "sliding" || group.kind === "chunked")) return blocks(Math.ceil(tokens * windowedShare)) * page
  switch (group.kind) {
    case "full":
    case "latent":
      return blocks(tokens) * page
    case "sliding":
      return (blocks(Math.min(group.window - 1 + layout.stepTokens, tokens)) + 1) * page
    case "chunked":
      return blocks(Math.min(group.chunk + layout.stepTokens, tokens)) * page
    case "state":
      return layout.statesPerSequence * Math.max(stateBytes(group, layout), smallestPage)
  }
}

/**
 * Bytes that one sequence of `tokens` needs on one GPU: vLLM's `max_memory_usage_bytes` of each layer's `KVCacheSpec`
 * (`vllm/v1/kv_cache_interface.py`), summed over the layers. A state takes a whole page of the attention layers beside it.
 */
export const sequenceBytes = (config: ModelConfig, layout: KvLayout, tokens: number): number => {
  const block = blockOf(config, layout)
  const { layers } = shapeOf(config)
  const pages = layers.filter((group) => group.kind !== "state").map((group) => block * layerTokenBytes(group, layout))
  const smallestPage = pages.length === 0 ? 0 : Math.min(...pages)
  let kept = 0
  let states = 0
  for (const group of layers) {
    if (group.kind === "state" && layout.states !== undefined) {
      kept += group.layers * layout.states * stateBytes(group, layout)
      continue
    }
    const bytes = group.layers * layerSequenceBytes(group, layout, tokens, block, smallestPage)
    if (group.kind === "state") states += bytes
    else kept += bytes
  }
  const { statesShare } = layout
  if (statesShare === undefined || kept === 0 || states === 0) return kept + states
  // Of two pools whose sizes are in proportion the fuller one decides.
  return Math.ceil(Math.max(kept, states / statesShare) * (1 + statesShare))
}

/** Bytes on one GPU of what is held for all sequences together, whether one runs or as many as may: the part of `sequenceBytes` that a second sequence does not need. */
export const heldBytes = (config: ModelConfig, layout: KvLayout): number => {
  const { layers } = shapeOf(config)
  const held = layers.filter(
    ({ kind }) => (kind === "state" && layout.states !== undefined) || ((kind === "sliding" || kind === "chunked") && layout.windowedTokens !== undefined)
  )
  return held.length === 0 ? 0 : sequenceBytes({ ...config, shape: { ...shapeOf(config), layers: held } }, layout, 0)
}

/** The longest sequence whose cache is at most `bytes`, up to `limit`, in whole blocks where it is not the limit; 0 where not one block is. */
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
