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

/**
 * The state of a recurrent layer by the family's own names. The shapes are those of vLLM's `MambaStateShapeCalculator`.
 */
export const recurrentState = (
  reader: ConfigReader,
  modelType: string,
  model: { readonly hidden_size: number; readonly heads: number; readonly head_dim: number }
): Result.Result<RecurrentState, Unreadable | UnsupportedArchitecture> =>
  Result.gen(function* () {
    const width = (...keys: ReadonlyArray<string>) => reader.count(limits.width, ...keys)
    const state = ({ conv, kernel, state }: Sizes, float32: boolean): RecurrentState => ({
      conv_values: conv * Math.max(0, (kernel ?? 4) - 1),
      state_values: state,
      state_float32: float32
    })
    const isFloat32 = (reader.value("mamba_ssm_cache_dtype") ?? reader.value("mamba_ssm_dtype")) === "float32"

    // Gated delta networks: Qwen3-Next and its successors.
    const valueHeads = yield* reader.count(limits.heads, "linear_num_value_heads")
    const valueDim = yield* width("linear_value_head_dim")
    const keyHeads = yield* reader.count(limits.heads, "linear_num_key_heads")
    const keyDim = yield* width("linear_key_head_dim")
    if (valueHeads !== null && valueDim !== null && keyHeads !== null && keyDim !== null) {
      const conv = 2 * keyDim * keyHeads + valueDim * valueHeads
      return state({ conv, kernel: yield* width("linear_conv_kernel_dim"), state: valueHeads * valueDim * keyDim }, isFloat32)
    }
    // Kimi's delta attention, always in 32 bits.
    const delta = reader.inner("linear_attn_config")
    if (delta !== null) {
      const heads = yield* delta.count(limits.heads, "num_heads")
      const dim = yield* delta.count(limits.width, "head_dim")
      if (heads !== null && dim !== null)
        return state({ conv: 3 * heads * dim, kernel: yield* delta.count(limits.width, "short_conv_kernel_size"), state: heads * dim * dim }, true)
    }
    const deltaHeads = yield* reader.count(limits.heads, "linear_num_heads")
    const deltaDim = yield* width("linear_head_dim")
    if (deltaHeads !== null && deltaDim !== null)
      return state({ conv: 3 * deltaHeads * deltaDim, kernel: yield* width("linear_conv_kernel_dim"), state: deltaHeads * deltaDim ** 2 }, true)
    // Mamba 2: separate heads.
    const heads = yield* reader.count(limits.heads, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", ...(modelType === "mamba2" ? ["num_heads"] : []))
    const dState = yield* width("ssm_state_size", "mamba_d_state", "state_size")
    const kernel = yield* width("conv_kernel", "mamba_d_conv", "conv_kernel_size", "d_conv")
    if (heads !== null && dState !== null) {
      const expand = yield* width("mamba_expand", "expand")
      const inner = (yield* width("mamba_d_ssm")) ?? (expand === null ? null : expand * model.hidden_size)
      const dim =
        (yield* width("mamba_head_dim", "mamba_d_head", "mamba_headdim", ...(modelType === "mamba2" ? ["head_dim"] : []))) ??
        (inner === null ? null : Math.floor(inner / heads))
      const groups = (yield* reader.count(limits.heads, "n_groups", "mamba_n_groups", "mamba_ngroups")) ?? 1
      if (dim !== null)
        return state(
          { conv: heads * dim + 2 * groups * dState, kernel, state: heads * dim * dState },
          isFloat32 || (modelType === "nemotron_h" && !reader.has("mamba_ssm_cache_dtype"))
        )
    }
    // Mamba 1: a state per channel.
    const expand = yield* width("mamba_expand", "expand")
    // The two pure families state the width itself. In one of them `expand` has another meaning.
    const own = modelType === "mamba" || modelType === "falcon_mamba" ? ["intermediate_size"] : []
    const inner = (yield* width("mamba_intermediate_size", ...own)) ?? (expand === null ? null : expand * model.hidden_size)
    if (inner !== null && dState !== null) return state({ conv: inner, kernel, state: inner * dState }, isFloat32)
    // Short convolutions only.
    const cache = yield* width("conv_L_cache")
    if (cache !== null) return state({ conv: model.hidden_size, kernel: cache, state: 0 }, false)
    // Lightning attention: a square matrix per head.
    if (modelType.startsWith("minimax") || modelType.startsWith("bailing"))
      return state({ conv: 0, kernel: 1, state: model.heads * model.head_dim ** 2 }, modelType.startsWith("bailing"))
    return yield* Result.fail(
      new UnsupportedArchitecture({ reason: "config.json has recurrent layers whose state is not described in a way that is known here." })
    )
  })
