import type { AdapterBuffers, Interval } from "./engineContract.ts"
import { shapeOf } from "./kvCache.ts"
import type { LayerGroup, ModelConfig } from "./repository.ts"

/** Values of a rank of 1: what each GPU holds whole, and what the GPUs divide. */
interface Values {
  readonly whole: number
  readonly divided: number
}

const none: Values = { whole: 0, divided: 0 }
const plus = (...values: ReadonlyArray<Values>): Values => values.reduce((a, b) => ({ whole: a.whole + b.whole, divided: a.divided + b.divided }), none)
const times = (count: number, { divided, whole }: Values): Values => ({ whole: whole * count, divided: divided * count })

/** Of a projection that the GPUs divide by what comes out, A is whole and B divided. */
const byOutput = (input: number, output: number): Values => ({ whole: input, divided: output })
/** Of one that they divide by what goes in, A is divided and B whole. */
const byInput = (input: number, output: number): Values => ({ whole: output, divided: input })

/** Pairs beside a layer's attention, whose projections to queries, keys and values are one in engines: each has its own A. */
const attention = (config: ModelConfig, group: LayerGroup, gpus: number, has: (name: string) => boolean): Values => {
  const { hidden_size: hidden } = config
  const queries = config.num_attention_heads * config.head_dim
  if (group.kind === "latent" || group.kind === "state") {
    // Down and up projections of which only the sum of the widths is known.
    return has("o_proj") || has("q_b_proj") || has("kv_b_proj") || has("in_proj") || has("out_proj")
      ? plus(byOutput(3 * hidden, 2 * queries), byInput(queries, hidden))
      : none
  }
  const copies = Math.max(1, gpus / group.kv_heads)
  const keyValue = group.kv_heads * (group.head_size + group.head_size_v) * copies
  const qkv = ["q_proj", "k_proj", "v_proj", "qkv_proj"].some(has) ? { whole: 3 * hidden, divided: queries + keyValue } : none
  return plus(qkv, has("o_proj") ? byInput(queries, hidden) : none)
}

const feedForward = (hidden: number, inner: number, has: (name: string) => boolean): Values =>
  plus(["gate_proj", "up_proj", "gate_up_proj"].some(has) ? { whole: 2 * hidden, divided: 2 * inner } : none, has("down_proj") ? byInput(inner, hidden) : none)

/**
 * Bytes per GPU of the room that an engine keeps for adapters: for each module a pair of `rank` x input and output x `rank` in 16 bits, in every slot
 * (`vllm/lora/layers`, `sglang/srt/lora/mem_pool.py`); the upper bound also has what their kernels work in and the graphs that are recorded once more.
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
  // How many layers of a mixture are dense, or have an expert that all tokens share, is not known: none, or all.
  const certain = plus(attentions, times(layers, experts === null ? dense : times(experts.count, feedForward(hidden, experts.intermediate_size, has))))
  const possible = experts === null ? none : times(layers, dense)
  const embeddings = buffers.embeddings ? plus({ whole: vocabulary + hidden, divided: 0 }, { whole: hidden + vocabulary, divided: 0 }) : none
  const bytes = ({ divided, whole }: Values) => 2 * buffers.slots * buffers.rank * (whole + divided / gpus)
  const working = stepTokens * 3 * buffers.rank * 4 + 64 * 2 ** 20
  return {
    low: Math.floor(bytes(certain)),
    high: Math.ceil(bytes(plus(certain, possible, embeddings)) * 1.05 + working + graphs.high * buffers.graphs)
  }
}
