import { Result } from "effect"
import { type ConfigReader, limits } from "./ConfigReader.ts"
import { type Unreadable, UnsupportedArchitecture } from "./failures.ts"

/** Sizes of the state that a recurrent layer keeps of a sequence. */
export interface RecurrentState {
  readonly conv_values: number
  readonly state_values: number
  readonly state_float32: boolean
}

interface Sizes {
  /** Width of the short convolution's input. */
  readonly conv: number
  /** Kernel size; one value less is kept. */
  readonly kernel: number | null
  readonly state: number
}

/** What the state of a layer is derived from. */
interface StateSource {
  readonly reader: ConfigReader
  readonly modelType: string
  readonly hidden_size: number
  readonly heads: number
  readonly head_dim: number
}

type Read<A> = Result.Result<A, Unreadable>

/** One kind of recurrent layer: its state, or null if the configuration does not describe such layers. */
type StateKind = (source: StateSource) => Read<RecurrentState | null>

const stateOf = ({ conv, kernel, state }: Sizes, float32: boolean): RecurrentState => ({
  conv_values: conv * Math.max(0, (kernel ?? 4) - 1),
  state_values: state,
  state_float32: float32
})

const isFloat32 = (reader: ConfigReader): boolean => (reader.value("mamba_ssm_cache_dtype") ?? reader.value("mamba_ssm_dtype")) === "float32"

/** Gated delta networks: Qwen3-Next and its successors. */
const gatedDelta: StateKind = ({ reader }) =>
  Result.gen(function* () {
    const valueHeads = yield* reader.count(limits.heads, "linear_num_value_heads")
    const valueDim = yield* reader.count(limits.width, "linear_value_head_dim")
    const keyHeads = yield* reader.count(limits.heads, "linear_num_key_heads")
    const keyDim = yield* reader.count(limits.width, "linear_key_head_dim")
    if (valueHeads === null || valueDim === null || keyHeads === null || keyDim === null) return null
    const conv = 2 * keyDim * keyHeads + valueDim * valueHeads
    const kernel = yield* reader.count(limits.width, "linear_conv_kernel_dim")
    return stateOf({ conv, kernel, state: valueHeads * valueDim * keyDim }, isFloat32(reader))
  })

/** Kimi's delta attention in a nested configuration, always in 32 bits. */
const nestedDelta: StateKind = ({ reader }) =>
  Result.gen(function* () {
    const delta = reader.inner("linear_attn_config")
    if (delta === null) return null
    const heads = yield* delta.count(limits.heads, "num_heads")
    const dim = yield* delta.count(limits.width, "head_dim")
    if (heads === null || dim === null) return null
    return stateOf({ conv: 3 * heads * dim, kernel: yield* delta.count(limits.width, "short_conv_kernel_size"), state: heads * dim * dim }, true)
  })

/** The same in a flat configuration. */
const flatDelta: StateKind = ({ reader }) =>
  Result.gen(function* () {
    const heads = yield* reader.count(limits.heads, "linear_num_heads")
    const dim = yield* reader.count(limits.width, "linear_head_dim")
    if (heads === null || dim === null) return null
    return stateOf({ conv: 3 * heads * dim, kernel: yield* reader.count(limits.width, "linear_conv_kernel_dim"), state: heads * dim ** 2 }, true)
  })

/** Size of the state per channel, and of the kernel, in both versions of Mamba. */
const mambaSizes = (reader: ConfigReader) =>
  Result.gen(function* () {
    const dState = yield* reader.count(limits.width, "ssm_state_size", "mamba_d_state", "state_size")
    const kernel = yield* reader.count(limits.width, "conv_kernel", "mamba_d_conv", "conv_kernel_size", "d_conv")
    return { dState, kernel }
  })

/** The width as a multiple of the hidden size. */
const expandedWidth = (reader: ConfigReader, hiddenSize: number): Read<number | null> =>
  Result.map(reader.count(limits.width, "mamba_expand", "expand"), (expand) => (expand === null ? null : expand * hiddenSize))

/** Width of a head of Mamba 2: stated, or the share of one head in the layer's width. */
const mamba2HeadDim = ({ hidden_size, modelType, reader }: StateSource, heads: number): Read<number | null> =>
  Result.gen(function* () {
    const expanded = yield* expandedWidth(reader, hidden_size)
    const inner = (yield* reader.count(limits.width, "mamba_d_ssm")) ?? expanded
    const ownNames = modelType === "mamba2" ? ["head_dim"] : []
    const stated = yield* reader.count(limits.width, "mamba_head_dim", "mamba_d_head", "mamba_headdim", ...ownNames)
    return stated ?? (inner === null ? null : Math.floor(inner / heads))
  })

/** Mamba 2: separate heads. */
const mamba2: StateKind = (source) =>
  Result.gen(function* () {
    const { modelType, reader } = source
    const ownNames = modelType === "mamba2" ? ["num_heads"] : []
    const heads = yield* reader.count(limits.heads, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", ...ownNames)
    const { dState, kernel } = yield* mambaSizes(reader)
    if (heads === null || dState === null) return null
    const dim = yield* mamba2HeadDim(source, heads)
    const groups = (yield* reader.count(limits.heads, "n_groups", "mamba_n_groups", "mamba_ngroups")) ?? 1
    if (dim === null) return null
    const float32 = isFloat32(reader) || (modelType === "nemotron_h" && !reader.has("mamba_ssm_cache_dtype"))
    return stateOf({ conv: heads * dim + 2 * groups * dState, kernel, state: heads * dim * dState }, float32)
  })

/** Mamba 1: a state per channel. */
const mamba1: StateKind = ({ hidden_size, modelType, reader }) =>
  Result.gen(function* () {
    const { dState, kernel } = yield* mambaSizes(reader)
    const expanded = yield* expandedWidth(reader, hidden_size)
    // The two pure families state the width itself. In one of them `expand` has another meaning.
    const ownNames = modelType === "mamba" || modelType === "falcon_mamba" ? ["intermediate_size"] : []
    const inner = (yield* reader.count(limits.width, "mamba_intermediate_size", ...ownNames)) ?? expanded
    return inner === null || dState === null ? null : stateOf({ conv: inner, kernel, state: inner * dState }, isFloat32(reader))
  })

/** Short convolutions only. */
const shortConvolution: StateKind = ({ hidden_size, reader }) =>
  Result.map(reader.count(limits.width, "conv_L_cache"), (kernel) => (kernel === null ? null : stateOf({ conv: hidden_size, kernel, state: 0 }, false)))

/** Lightning attention: a square matrix per head. */
const lightning: StateKind = ({ head_dim, heads, modelType }) => {
  const isBailing = modelType.startsWith("bailing")
  return Result.succeed(isBailing || modelType.startsWith("minimax") ? stateOf({ conv: 0, kernel: 1, state: heads * head_dim ** 2 }, isBailing) : null)
}

/** In the order in which a configuration is compared with them. */
const stateKinds: ReadonlyArray<StateKind> = [gatedDelta, nestedDelta, flatDelta, mamba2, mamba1, shortConvolution, lightning]

/**
 * The state of a recurrent layer by the family's own names. The shapes follow vLLM's `MambaStateShapeCalculator`.
 */
export const recurrentState = (
  reader: ConfigReader,
  modelType: string,
  model: { readonly hidden_size: number; readonly heads: number; readonly head_dim: number }
): Result.Result<RecurrentState, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    for (const kind of stateKinds) {
      const state = yield* kind({ reader, modelType, ...model })
      if (state !== null) return state
    }
    return yield* Result.fail(
      new UnsupportedArchitecture({ reason: "config.json has recurrent layers of an unknown form: Seatrial cannot compute the memory of their state." })
    )
  })
