import type { AdapterBuffers, Interval } from "./engineContract.ts"
import { shapeOf } from "./kvCache.ts"
import type { LayerGroup, ModelConfig } from "./repository.ts"

/** Values per unit of rank: `whole` is replicated on each GPU, `divided` is split over all GPUs. */
interface Values {
  readonly replicated: number
  readonly divided: number
}

const none: Values = { replicated: 0, divided: 0 }
const plus = (...values: ReadonlyArray<Values>): Values =>
  values.reduce((a, b) => ({ replicated: a.replicated + b.replicated, divided: a.divided + b.divided }), none)
const times = (count: number, { divided, replicated }: Values): Values => ({ replicated: replicated * count, divided: divided * count })

/** For a projection that is split by its output, A is replicated and B is divided. */
const byOutput = (input: number, output: number): Values => ({ replicated: input, divided: output })
/** For a projection that is split by its input, A is divided and B is replicated. */
const byInput = (input: number, output: number): Values => ({ replicated: output, divided: input })

/**
 * LoRA pairs of one attention layer. Engines fuse the projections to queries, keys and values, but each keeps its own
 * A.
 */
const attention = (config: ModelConfig, group: LayerGroup, gpus: number, has: (name: string) => boolean): Values => {
  const { hidden_size: hidden } = config
  const queries = config.num_attention_heads * config.head_dim
  if (group.kind === "latent" || group.kind === "state") {
    // Down and up projections. Only the sum of their widths is recorded.
    return has("o_proj") || has("q_b_proj") || has("kv_b_proj") || has("in_proj") || has("out_proj")
      ? plus(byOutput(3 * hidden, 2 * queries), byInput(queries, hidden))
      : none
  }
  const copies = Math.max(1, gpus / group.kv_heads)
  const keyValue = group.kv_heads * (group.head_size + group.head_size_v) * copies
  const qkv = ["q_proj", "k_proj", "v_proj", "qkv_proj"].some(has) ? { replicated: 3 * hidden, divided: queries + keyValue } : none
  return plus(qkv, has("o_proj") ? byInput(queries, hidden) : none)
}

const feedForward = (hidden: number, inner: number, has: (name: string) => boolean): Values =>
  plus(
    ["gate_proj", "up_proj", "gate_up_proj"].some(has) ? { replicated: 2 * hidden, divided: 2 * inner } : none,
    has("down_proj") ? byInput(inner, hidden) : none
  )

/**
 * Bytes per GPU of the buffers that an engine reserves for adapters: for each module and slot, a pair of input x `rank`
 * and `rank` x output in 16 bits (`vllm/lora/layers`, `sglang/srt/lora/mem_pool.py`). The upper bound adds the kernels'
 * work space and the CUDA graphs that are captured again for batches with an adapter.
 */
export const adapterBytes = (options: {
  readonly config: ModelConfig
  readonly buffers: AdapterBuffers | undefined
  readonly gpus: number
  readonly stepTokens: number
  readonly graphs: Interval
}): Interval => {
  const { buffers, config, gpus, graphs, stepTokens } = options
  if (buffers === undefined) return { low: 0, high: 0 }
  const { hidden_size: hidden, vocab_size: vocabulary } = config
  const { modules } = buffers
  const has = (name: string) => modules === "all" || modules.includes(name)
  const shape = shapeOf(config)
  const layers = shape.layers.reduce((sum, group) => sum + group.layers, 0)
  const attentions = plus(...shape.layers.map((group) => times(group.layers, attention(config, group, gpus, has))))
  const { experts } = shape
  const dense = feedForward(hidden, shape.intermediate_size ?? experts?.intermediate_size ?? 4 * hidden, has)
  // The configuration does not say how many layers of a mixture are dense or have a shared expert. The bounds assume
  // none and all.
  const certain = plus(attentions, times(layers, experts === null ? dense : times(experts.count, feedForward(hidden, experts.intermediate_size, has))))
  const possible = experts === null ? none : times(layers, dense)
  const embeddings = buffers.embeddings ? plus({ replicated: vocabulary + hidden, divided: 0 }, { replicated: hidden + vocabulary, divided: 0 }) : none
  const bytes = ({ divided, replicated }: Values) => 2 * buffers.slots * buffers.rank * (replicated + divided / gpus)
  const working = stepTokens * 3 * buffers.rank * 4 + 64 * 2 ** 20
  return {
    low: Math.floor(bytes(certain)),
    high: Math.ceil(bytes(plus(certain, possible, embeddings)) * 1.05 + working + graphs.high * buffers.graphs)
  }
}
